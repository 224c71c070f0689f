// Tells what went wrong with TLS from what Node and grpc-js say of a connection that failed, and what to do about it.
// The faults and the sentences are the Python client's.

import type { TlsFault } from "./errors.js";

/** What went wrong, what is told of the server, and what to do about it. */
export interface TlsFailure {
  readonly fault: TlsFault;
  readonly finding: string;
  readonly remedy: string;
}

/** How a connection ends that the server closes: in TLS 1.3 it looks at the certificate after the client's part. */
const CLOSED = /Failed to connect|disconnected before secure TLS|socket hang up|ECONNRESET|EPIPE/;

/** What is said, the fault, and the finding; `$why` is the group of that name. The first that fits counts. */
const WITH_TLS: readonly (readonly [RegExp, TlsFault, string])[] = [
  [/ALTNAME_INVALID|certificate's altnames/, "OTHER_NAME", "has a TLS certificate for another name"],
  [/wrong version number|unknown protocol|packet length too long|http request/, "PLAIN_SERVER", "speaks no TLS"],
  [/alert (?:\w+ )*(?:certificate|unknown ca|access denied)/, "ENDED", "ended the TLS connection"],
  [/SSL routines:[^:]*:(?<why>[^:]*)/, "DISAGREED", "and this client agree on no TLS connection ($why)"],
  [/(?<why>.*\bcertificate\b.*)/, "UNTRUSTED", "has a TLS certificate that cannot be verified ($why)"],
  [CLOSED, "ENDED", "ended the TLS connection"],
];
const WITHOUT_TLS: typeof WITH_TLS = [[CLOSED, "PLAIN_CLIENT", "closed the connection at once"]];

const REMEDIES: Readonly<Record<TlsFault, string>> = {
  UNTRUSTED: "the client's option `tls.ca` says who signed it",
  OTHER_NAME: "the client's option `tls.serverName` says which name it must have",
  PLAIN_SERVER: "leave out `tls`, or start it with --tls-cert and --tls-key",
  ENDED: "if it requires certificates, the client's options `tls.cert` and `tls.key` show a valid one",
  PLAIN_CLIENT: "if it speaks TLS, the client needs the option `tls`, such as { ca }",
  DISAGREED: "",
};

/** What `said` of a connection that could not be made tells of TLS; undefined if it has nothing to do with it. */
export function tlsFailure(said: string, endpoint: string, tls: boolean): TlsFailure | undefined {
  if (endpoint.startsWith("unix:")) {
    return undefined;
  }
  for (const [pattern, fault, finding] of tls ? WITH_TLS : WITHOUT_TLS) {
    const found = pattern.exec(said);
    if (found !== null) {
      const why = found.groups?.why ?? "";
      return {
        fault,
        finding: `the server at ${endpoint} ${finding.replace("$why", () => why)}`,
        remedy: REMEDIES[fault],
      };
    }
  }
  return undefined;
}
