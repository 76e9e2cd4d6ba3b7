import { checkServerIdentity } from 'node:tls';
import type { ServerUnaryCall } from '@grpc/grpc-js';

/** The part of a call that identifies its peer. */
type AnyCall = Pick<ServerUnaryCall<Uint8Array, Uint8Array>, 'getAuthContext'>;

/** Says why the peer of a call may not call, or undefined when it may. */
export type PeerGuard = (call: AnyCall) => string | undefined;

/** Lets everybody in who could connect. */
export const everyPeer: PeerGuard = () => undefined;

/**
 * Lets in peers whose certificate carries the DNS name `san`, wildcards included. That the certificate is valid and of
 * a trusted authority was checked when the connection was made.
 */
export function createSanGuard(san: string): PeerGuard {
  return (call) => {
    const certificate = call.getAuthContext().sslPeerCertificate;
    if (certificate === undefined) {
      return 'a client certificate is required';
    }
    return checkServerIdentity(san, certificate) === undefined
      ? undefined
      : `the client certificate does not carry the DNS name ${san}`;
  };
}

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
