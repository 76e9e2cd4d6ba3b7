import { checkServerIdentity } from 'node:tls';
import type { ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';

type AnyCall = ServerUnaryCall<Uint8Array, Uint8Array> | ServerWritableStream<Uint8Array, Uint8Array>;

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
