// A typed client of each service of the contract, derived from its generated description.

import type { DescMessage, DescMethodUnary, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { CallOptions, Calls } from "./calls.js";
import type { Dated } from "./times.js";

/** One RPC: its request may be a plain object with the fields that are not at their defaults, and a Date for each time. */
export type Rpc<I extends DescMessage, O extends DescMessage> = (
  request: Dated<MessageInitShape<I>>,
  options?: CallOptions,
) => Promise<MessageShape<O>>;

/** The RPCs of a service, by their names in camelCase. */
export type ServiceClient<Service extends DescService> = {
  readonly [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<infer I, infer O>
    ? Rpc<I, O>
    : never;
};

/** A client of a service; its RPCs may be taken out of it. */
export function serviceClient<Service extends DescService>(service: Service, calls: Calls): ServiceClient<Service> {
  const rpcs = service.methods.map((method) => [
    method.localName,
    (request: Record<string, unknown>, options?: CallOptions) =>
      calls.unary(method as DescMethodUnary, request, options),
  ]);
  return Object.fromEntries(rpcs);
}
