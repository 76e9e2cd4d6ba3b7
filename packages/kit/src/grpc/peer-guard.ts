import { checkServerIdentity } from 'node:tls';
import type { ServerUnaryCall } from '@grpc/grpc-js';

/** What a guard needs of a call: all kinds of calls have it. */
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
