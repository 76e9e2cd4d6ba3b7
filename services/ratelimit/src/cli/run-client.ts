import { readFile } from 'node:fs/promises';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { ChannelCredentials, Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { type Outcome, wrongUsage } from '@tollgate/kit/cli';
import { trimDetails } from '@tollgate/kit/grpc/library';
import {
  type RateLimitRequest,
  RateLimitRequestSchema,
  type RateLimitResponse,
  RateLimitResponse_Code,
  type RateLimitResponse_DescriptorStatus,
  RateLimitResponse_RateLimit_Unit,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import type { Entry } from '@tollgate/rules/match';
import { shouldRateLimitPath } from '../ratelimit/service.ts';
import { type ClientOptions, type ClientTlsFiles, clientHelp, parseClientOptions } from './client-options.ts';

/**
 * Asks the service once.
 *
 * @throws ServiceError of grpc-js when the call fails; Error when a PEM file cannot be read or used.
 */
async function askLimiter(options: ClientOptions): Promise<RateLimitResponse> {
  const { address, domain, descriptors, hitsAddend, timeoutMs, tls } = options;
  const credentials = tls === undefined ? ChannelCredentials.createInsecure() : await tlsCredentials(tls);
  const client = new Client(address, credentials);
  const request = create(RateLimitRequestSchema, {
    domain,
    descriptors: descriptors.map((entries) => ({ entries: [...entries] })),
    hitsAddend,
  });
  try {
    return await call(client, request, Date.now() + timeoutMs);
  } finally {
    client.close();
  }
}

function call(client: Client, request: RateLimitRequest, deadline: number): Promise<RateLimitResponse> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      shouldRateLimitPath,
      (message: RateLimitRequest) => Buffer.from(toBinary(RateLimitRequestSchema, message)),
      (bytes) => fromBinary(RateLimitResponseSchema, bytes),
      request,
      new Metadata(),
      { deadline },
      (error: ServiceError | null, response) =>
        response === undefined
          ? reject(error ?? new Error('an answer without a message'))
          : resolve(response),
    );
  });
}

async function tlsCredentials({ caFile, certFile, keyFile }: ClientTlsFiles): Promise<ChannelCredentials> {
  const read = (path: string) => (path === '' ? Promise.resolve(null) : readFile(path));
  const [ca, key, cert] = await Promise.all([read(caFile), read(keyFile), read(certFile)]);
  return ChannelCredentials.createSsl(ca, key, cert);
}

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
function explainFailure(address: string, error: unknown): string {
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

/** What remains of an unlimited rule, by the contract. */
const unlimitedRemaining = 0xffff_ffff;

/** An answer for people: the overall code, a line for each descriptor, a line for each header to add. */
function formatAnswer(
  { overallCode, statuses, responseHeadersToAdd }: RateLimitResponse,
  descriptors: readonly (readonly Entry[])[],
): string {
  const lines = [
    codeName(overallCode),
    ...statuses.map((status, index) => `  (${entriesText(descriptors[index])}): ${statusText(status)}`),
    ...responseHeadersToAdd.map(({ key, value }) => `  header ${key}: ${value}`),
  ];
  return `${lines.join('\n')}\n`;
}

function entriesText(entries: readonly Entry[] = []): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(', ');
}

function statusText(status: RateLimitResponse_DescriptorStatus): string {
  const { code, currentLimit, limitRemaining, durationUntilReset } = status;
  const parts = [codeName(code)];
  if (currentLimit !== undefined) {
    const { requestsPerUnit, unit, name } = currentLimit;
    const unitName = RateLimitResponse_RateLimit_Unit[unit]?.toLowerCase() ?? `unit ${unit}`;
    parts.push(`limit ${requestsPerUnit} per ${unitName}${name === '' ? '' : ` (${name})`}`);
    parts.push(`${limitRemaining} remaining`);
  } else {
    parts.push(limitRemaining === unlimitedRemaining ? 'unlimited' : 'no limit');
  }
  if (durationUntilReset !== undefined) parts.push(`resets in ${durationUntilReset.seconds}s`);
  return parts.join(', ');
}

/** Servers may know codes that this client does not. */
function codeName(code: RateLimitResponse_Code): string {
  return RateLimitResponse_Code[code] ?? `code ${code}`;
}

const failedExitCode = 1;
const overLimitExitCode = 3;

/** Does what the arguments of the test client ask for. */
export async function runClient(args: readonly string[]): Promise<Outcome> {
  const parsed = parseClientOptions(args);
  if (parsed.kind === 'help') return { exitCode: 0, output: clientHelp };
  if (parsed.kind === 'wrong') return wrongUsage('tollgate-ratelimit-client', parsed.problems);
  try {
    return report(await askLimiter(parsed.options), parsed.options);
  } catch (error) {
    return { exitCode: failedExitCode, errors: explainFailure(parsed.options.address, error) };
  }
}

function report(answer: RateLimitResponse, { json, failOverLimit, descriptors }: ClientOptions): Outcome {
  const overLimit = answer.overallCode === RateLimitResponse_Code.OVER_LIMIT;
  return {
    exitCode: overLimit && failOverLimit ? overLimitExitCode : 0,
    output: json
      ? `${JSON.stringify(toJson(RateLimitResponseSchema, answer), null, 2)}\n`
      : formatAnswer(answer, descriptors),
  };
}
