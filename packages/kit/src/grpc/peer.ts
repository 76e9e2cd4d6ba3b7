import { checkServerIdentity } from 'node:tls';
import type { ServerUnaryCall } from '@grpc/grpc-js';

/** The part of a call that identifies its peer. */
type AnyCall = Pick<ServerUnaryCall<Uint8Array, Uint8Array>, 'getAuthContext'>;

/** Returns why the peer of a call is refused, or undefined when it is accepted. */
export type PeerGuard = (call: AnyCall) => string | undefined;

/** Accepts every peer that could connect. */
export const everyPeer: PeerGuard = () => undefined;

/**
 * Accepts peers whose certificate has one of these DNS names, including by wildcard. The handshake
 * has verified the certificate.
 */
export function createSanGuard(names: readonly string[]): PeerGuard {
  return (call) => {
    const certificate = call.getAuthContext().sslPeerCertificate;
    if (certificate === undefined) {
      return 'a client certificate is required';
    }
    return names.some((name) => checkServerIdentity(name, certificate) === undefined)
      ? undefined
      : `the client certificate does not have the DNS name ${names.join(' or ')}`;
  };
}

/**
 * Identity of the peer from its verified client certificate: the first URI of its subject
 * alternative names, else the first DNS name. Empty without such a name.
 */
export function peerIdentity(call: AnyCall): string {
  const names = call.getAuthContext().sslPeerCertificate?.subjectaltname ?? '';
  return firstName(names, 'URI') ?? firstName(names, 'DNS') ?? '';
}

/** Node separates names by commas, and quotes those with special characters as JSON strings. */
function firstName(names: string, kind: 'URI' | 'DNS'): string | undefined {
  const pattern = /(?:^|, )(URI|DNS):("(?:[^"\\]|\\.)*"|[^,]*)/g;
  for (const [, found, name = ''] of names.matchAll(pattern)) {
    if (found === kind) return name.startsWith('"') ? String(JSON.parse(name)) : name;
  }
  return undefined;
}
