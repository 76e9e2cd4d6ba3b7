import type { ServerUnaryCall } from '@grpc/grpc-js';

/** What is needed of a call: all kinds of calls have it. */
type AnyCall = Pick<ServerUnaryCall<Uint8Array, Uint8Array>, 'getAuthContext'>;

/**
 * Identity of the peer by its client certificate, which was verified when the connection was made: the first URI of its
 * subject alternative names, else the first DNS name. Empty without a certificate, or for one without such a name.
 */
export function peerIdentity(call: AnyCall): string {
  const names = call.getAuthContext().sslPeerCertificate?.subjectaltname ?? '';
  return firstName(names, 'URI') ?? firstName(names, 'DNS') ?? '';
}

/** Node separates names by commas, and quotes names with special characters as JSON strings. */
function firstName(names: string, kind: 'URI' | 'DNS'): string | undefined {
  const pattern = /(?:^|, )(URI|DNS):("(?:[^"\\]|\\.)*"|[^,]*)/g;
  for (const [, found, name = ''] of names.matchAll(pattern)) {
    if (found === kind) return name.startsWith('"') ? String(JSON.parse(name)) : name;
  }
  return undefined;
}
