#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { ChannelCredentials, Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { finish, type Outcome, wrongUsage } from '@tollgate/kit/cli';
import { getErrorMessage } from '@tollgate/kit/errors';
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
import { shouldRateLimitPath } from '../decision/decide.ts';
import { type ClientOptions, type ClientTlsFiles, clientHelp, parseClientOptions } from './client-options.ts';

/**
 * Asks the service once.
 *
 * @throws ServiceError of grpc-js when the call fails; Error when a PEM file cannot be read or
 * used.
 */
async function callService(options: ClientOptions): Promise<RateLimitResponse> {
  const { address, domain, descriptors, hitsAddend, timeoutMs, tls } = options;
  const credentials = tls === undefined ? ChannelCredentials.createInsecure() : await tlsCredentials(tls);
  const client = new Client(address, credentials, {
    // The lookup of a TXT record would keep the process alive where no name server answers.
    'grpc.service_config_disable_resolution': 1,
  });
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
          ? reject(error ?? new Error('the response has no message'))
          : resolve(response),
    );
  });
}

async function tlsCredentials({ caFile, certFile, keyFile }: ClientTlsFiles): Promise<ChannelCredentials> {
  const read = (path: string) => (path === '' ? Promise.resolve(null) : readFile(path));
  const [ca, key, cert] = await Promise.all([read(caFile), read(keyFile), read(certFile)]);
  return ChannelCredentials.createSsl(ca, key, cert);
}

const advice: Readonly<Record<number, string>> = {
  [status.UNAVAILABLE]:
    'Check that the service is running, that this is its gRPC port (GRPC_PORT), and whether it uses TLS (-grpc-use-tls).',
  [status.DEADLINE_EXCEEDED]:
    'Check that this is the gRPC port of the service and that its counter store is up, or increase -timeout.',
  [status.UNIMPLEMENTED]: 'The server is not a rate limit service (envoy.service.ratelimit.v3).',
  [status.UNAUTHENTICATED]: 'The service requires a client certificate: -grpc-cert-file and -grpc-key-file.',
  [status.UNKNOWN]: 'The service refused the request, see its log.',
};

/** Why a call failed, and what to check. */
function explainFailure(address: string, error: unknown): string {
  const { code, details = '' } = toServiceError(error);
  if (code === undefined) return `${address} was not called: ${getErrorMessage(error)}\n`;
  const reason = trimDetails(details).replaceAll(/\s+/g, ' ').trim();
  const lines = [`the call to ${address} failed: ${status[code] ?? code}: ${reason}`, advice[code]];
  return lines.flatMap((line) => (line === undefined ? [] : [`${line}\n`])).join('');
}

function toServiceError(error: unknown): { readonly code?: number; readonly details?: string } {
  const isServiceError = error instanceof Error && 'details' in error && 'code' in error;
  return isServiceError && typeof error.code === 'number'
    ? { code: error.code, details: String(error.details) }
    : {};
}

/** `limitRemaining` of an unlimited rule. */
const unlimitedRemaining = 0xffff_ffff;

/** The overall code, then a line for each descriptor and each header. */
function formatResponse(
  { overallCode, statuses, responseHeadersToAdd }: RateLimitResponse,
  descriptors: readonly (readonly Entry[])[],
): string {
  const lines = [
    getCodeName(overallCode),
    ...statuses.map((status, index) => `  (${formatEntries(descriptors[index])}): ${formatStatus(status)}`),
    ...responseHeadersToAdd.map(({ key, value }) => `  header ${key}: ${value}`),
  ];
  return `${lines.join('\n')}\n`;
}

function formatEntries(entries: readonly Entry[] = []): string {
  return entries.map(({ key, value }) => `${key}=${value}`).join(', ');
}

function formatStatus(status: RateLimitResponse_DescriptorStatus): string {
  const { code, currentLimit, limitRemaining, durationUntilReset } = status;
  const parts = [getCodeName(code)];
  if (currentLimit !== undefined) {
    const { requestsPerUnit, unit, name } = currentLimit;
    const unitName = RateLimitResponse_RateLimit_Unit[unit]?.toLowerCase() ?? `unit ${unit}`;
    // The wire has no unit for other periods.
    const per = unit === RateLimitResponse_RateLimit_Unit.UNKNOWN ? '' : ` per ${unitName}`;
    parts.push(`limit ${requestsPerUnit}${per}${name === '' ? '' : ` (${name})`}`);
    parts.push(`${limitRemaining} remaining`);
  } else {
    parts.push(limitRemaining === unlimitedRemaining ? 'unlimited' : 'no limit');
  }
  if (durationUntilReset !== undefined) parts.push(`resets in ${durationUntilReset.seconds}s`);
  return parts.join(', ');
}

/** Newer servers may have unknown codes. */
function getCodeName(code: RateLimitResponse_Code): string {
  return RateLimitResponse_Code[code] ?? `code ${code}`;
}

const failedExitCode = 1;
const overLimitExitCode = 3;

async function runClient(args: readonly string[]): Promise<Outcome> {
  const parsed = parseClientOptions(args);
  if (parsed.kind === 'help') return { exitCode: 0, output: clientHelp };
  if (parsed.kind === 'wrong') return wrongUsage('tollgate-ratelimit-client', parsed.problems);
  try {
    return toOutcome(await callService(parsed.options), parsed.options);
  } catch (error) {
    return { exitCode: failedExitCode, errors: explainFailure(parsed.options.address, error) };
  }
}

function toOutcome(
  response: RateLimitResponse,
  { json, failOverLimit, descriptors }: ClientOptions,
): Outcome {
  const overLimit = response.overallCode === RateLimitResponse_Code.OVER_LIMIT;
  return {
    exitCode: overLimit && failOverLimit ? overLimitExitCode : 0,
    output: json
      ? `${JSON.stringify(toJson(RateLimitResponseSchema, response), null, 2)}\n`
      : formatResponse(response, descriptors),
  };
}

finish(await runClient(process.argv.slice(2)));
