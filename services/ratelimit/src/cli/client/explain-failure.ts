import { status } from '@grpc/grpc-js';
import { trimDetails } from '@tollgate/kit/grpc/library';

/** What to look at, by the status of a failed call. */
const advice: Readonly<Record<number, string>> = {
  [status.UNAVAILABLE]:
    'Is the service running there, is this its gRPC port (GRPC_PORT), and does it serve TLS (-grpc-use-tls) or not?',
  [status.DEADLINE_EXCEEDED]:
    'Is this the gRPC port of the service, and is its counter store up? -timeout gives it more time.',
  [status.UNIMPLEMENTED]: 'This is no rate limit service (envoy.service.ratelimit.v3).',
  [status.UNAUTHENTICATED]:
    'The service wants a client certificate of its authority: -grpc-cert-file and -grpc-key-file.',
  [status.UNKNOWN]: 'The service refused the request; its log says more.',
};

/** Tells why a call failed, and what to check. */
export function explainFailure(address: string, error: unknown): string {
  const { code, details = '' } = serviceErrorOf(error);
  if (code === undefined) return `${address} was not asked: ${messageOf(error)}\n`;
  const reason = trimDetails(details).replaceAll(/\s+/g, ' ').trim();
  const lines = [`${address} did not decide: ${status[code] ?? code}: ${reason}`, advice[code]];
  return lines.flatMap((line) => (line === undefined ? [] : [`${line}\n`])).join('');
}

function serviceErrorOf(error: unknown): { readonly code?: number; readonly details?: string } {
  const isServiceError = error instanceof Error && 'details' in error && 'code' in error;
  return isServiceError && typeof error.code === 'number'
    ? { code: error.code, details: String(error.details) }
    : {};
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
