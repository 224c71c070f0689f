// compare.mjs [ENDPOINT]: what a call costs through the client and through gRPC libraries, at one call after the other and at 16
// at a time: appends of one message to a server in memory. The endpoint is that of a running server, `unix:/path`.
//
// Each slice is 500 calls; the ways take turns. It prints medians of 15 slices: milliseconds and processor time of this process.
import * as net from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import {
  AppendMessagesRequestSchema,
  AppendMessagesResponseSchema,
  ConversationService,
} from "../../packages/client/dist/esm/generated/v1.js";
import { defaultEndpoint, Remora } from "../../packages/client/dist/esm/index.js";

const CALLS = 500;
const SLICES = 15;
const TIMEOUT_MS = 10_000;

const endpoint = process.argv[2] ?? process.env.REMORA_ENDPOINT ?? defaultEndpoint();
const path = endpoint.slice("unix:".length);

let number = 0;
function request() {
  number++;
  const messages = [{ role: "user", text: `a message of the usual length, number ${number}` }];
  return { conversationId: `c${number % 50}`, createIfMissing: { userId: "u" }, messages };
}

const remora = new Remora({ endpoint, timeoutMs: TIMEOUT_MS });

const connect = createClient(
  ConversationService,
  createGrpcTransport({
    baseUrl: "http://localhost",
    acceptCompression: [],
    nodeOptions: { createConnection: () => net.connect(path) },
  }),
);

const channel = new grpc.Client(endpoint, grpc.credentials.createInsecure());
function throughGrpcJs() {
  return new Promise((resolve, reject) => {
    channel.makeUnaryRequest(
      "/remora.v1.ConversationService/AppendMessages",
      (message) => Buffer.from(toBinary(AppendMessagesRequestSchema, message)),
      (bytes) => fromBinary(AppendMessagesResponseSchema, bytes),
      create(AppendMessagesRequestSchema, request()),
      { deadline: Date.now() + TIMEOUT_MS },
      (error, reply) => (error ? reject(error) : resolve(reply)),
    );
  });
}

const WAYS = {
  "@remora/client": () => remora.conversations.appendMessages(request()),
  "@grpc/grpc-js": throughGrpcJs,
  "@connectrpc/connect-node": () => connect.appendMessages(request(), { timeoutMs: TIMEOUT_MS }),
};

async function slice(call, atATime) {
  const cpu = process.cpuUsage();
  const began = performance.now();
  let left = CALLS;
  const worker = async () => {
    while (left-- > 0) {
      await call();
    }
  };
  await Promise.all(Array.from({ length: atATime }, worker));
  const { user, system } = process.cpuUsage(cpu);
  return { ms: (performance.now() - began) / CALLS, cpuMs: (user + system) / 1000 / CALLS };
}

function median(values) {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
}

for (const atATime of [1, 16]) {
  const slices = Object.fromEntries(Object.keys(WAYS).map((name) => [name, []]));
  for (let round = 0; round <= SLICES; round++) {
    for (const [name, call] of Object.entries(WAYS)) {
      const measured = await slice(call, atATime);
      if (round > 0) {
        slices[name].push(measured); // the first warms up
      }
    }
  }
  for (const [name, measured] of Object.entries(slices)) {
    const ms = median(measured.map((one) => one.ms));
    const cpuMs = median(measured.map((one) => one.cpuMs));
    console.log(`${atATime} at a time  ${name.padEnd(25)} ${ms.toFixed(3)} ms  ${cpuMs.toFixed(3)} ms of CPU`);
  }
}
process.exit();
