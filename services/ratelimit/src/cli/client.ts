#!/usr/bin/env node
import { readFile } from 'node:fs/promises';
import { create, fromBinary, toBinary, toJson } from '@bufbuild/protobuf';
import { ChannelCredentials, Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import {
  describeFlags,
  type FlagValues,
  finish,
  type Outcome,
  parseFlags,
  wrongUsage,
} from '@tollgate/kit/cli';
import { trimDetails } from '@tollgate/kit/grpc/library';
import { parseDuration } from '@tollgate/kit/time';
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
import { parseDescriptor } from '../ratelimit/request.ts';
import { shouldRateLimitPath } from '../ratelimit/service.ts';

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
  if (code === undefined) return `${address} was not called: ${getMessage(error)}\n`;
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

function getMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
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
    parts.push(`limit ${requestsPerUnit} per ${unitName}${name === '' ? '' : ` (${name})`}`);
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

interface ClientOptions {
  /** `host:port` or `unix:/path`. */
  readonly address: string;
  readonly domain: string;
  readonly descriptors: readonly (readonly Entry[])[];
  readonly hitsAddend: number;
  readonly timeoutMs: number;
  /** Absent without TLS. Paths of PEM files; empty for none. */
  readonly tls?: ClientTlsFiles;
  readonly json: boolean;
  /** Exit with 3 when over a limit. */
  readonly failOverLimit: boolean;
}

interface ClientTlsFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

export type ParsedClientOptions =
  | { readonly kind: 'run'; readonly options: ClientOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problems: readonly string[] };

const flags = {
  dial_string: { kind: 'text', value: 'host:port', default: 'localhost:8081', doc: 'The service.' },
  domain: { kind: 'text', value: 'name', doc: 'The domain of the request.' },
  descriptors: {
    kind: 'list',
    value: 'key=value,...',
    doc: 'The entries of a descriptor, such as name=foo,age=14.',
  },
  'hits-addend': { kind: 'text', value: 'n', default: '1', doc: 'Hits to count; 0 counts as 1.' },
  timeout: { kind: 'text', value: 'duration', default: '5s', doc: 'Timeout of the call.' },
  json: { kind: 'switch', doc: 'Print the response as JSON.' },
  'fail-over-limit': { kind: 'switch', doc: 'Exit with 3 when the response is OVER_LIMIT.' },
  'grpc-use-tls': { kind: 'switch', doc: 'Connect with TLS.' },
  'grpc-server-ca-file': {
    kind: 'text',
    value: 'file',
    doc: 'PEM file with the certificate authorities of the server; default those of the system.',
  },
  'grpc-cert-file': { kind: 'text', value: 'file', doc: 'PEM file with the client certificate.' },
  'grpc-key-file': { kind: 'text', value: 'file', doc: 'PEM file with its private key.' },
  'oltp-protocol': {
    kind: 'text',
    value: 'http|grpc',
    doc: 'Accepted for compatibility, no effect: this client exports no spans.',
  },
} as const;

type Values = FlagValues<typeof flags>;

const clientHelp = `tollgate-ratelimit-client -domain <name> -descriptors <key=value,...> [flags]

Calls the rate limit service once, as Envoy does, and prints the response. The request is counted.

${describeFlags(flags)}
Flags are written with one dash or two, -flag value or -flag=value. Exits with 0 on a response (but see
-fail-over-limit), 1 when the call failed, 2 when the flags are invalid.
`;

/** Parses the arguments; returns all problems at once. */
export function parseClientOptions(args: readonly string[]): ParsedClientOptions {
  const parsed = parseFlags(flags, args);
  if (parsed.kind !== 'values') return parsed;
  const { values } = parsed;
  const problems: string[] = [];

  if (values.dial_string === '') problems.push('-dial_string is empty: expected host:port');
  if (values.domain === '') problems.push('-domain is needed');
  if (values.descriptors.length === 0) problems.push('-descriptors is needed, at least once');
  const descriptors = values.descriptors.map((text) => {
    const descriptor = parseDescriptor(text);
    if (!descriptor.ok) problems.push(`-descriptors ${text}: ${descriptor.problem}`);
    return descriptor.ok ? descriptor.entries : [];
  });
  const hitsAddend = Number(values['hits-addend']);
  if (!/^\d{1,10}$/.test(values['hits-addend']) || hitsAddend > 0xffff_ffff) {
    problems.push(`-hits-addend is a whole number up to 4294967295, not '${values['hits-addend']}'`);
  }
  const timeoutMs = parseDuration(values.timeout) ?? 0;
  if (timeoutMs <= 0)
    problems.push(`-timeout is a duration above 0 such as 5s or 300ms, not '${values.timeout}'`);
  problems.push(...tlsProblems(values));

  if (problems.length > 0) return { kind: 'wrong', problems };
  const options = {
    address: values.dial_string,
    domain: values.domain,
    descriptors,
    hitsAddend,
    timeoutMs,
    json: values.json,
    failOverLimit: values['fail-over-limit'],
  };
  return { kind: 'run', options: values['grpc-use-tls'] ? { ...options, tls: tlsFiles(values) } : options };
}

function tlsFiles(values: Values): ClientTlsFiles {
  return {
    caFile: values['grpc-server-ca-file'],
    certFile: values['grpc-cert-file'],
    keyFile: values['grpc-key-file'],
  };
}

function tlsProblems(values: Values): string[] {
  const { caFile, certFile, keyFile } = tlsFiles(values);
  const problems: string[] = [];
  if ((certFile === '') !== (keyFile === '')) {
    problems.push('-grpc-cert-file and -grpc-key-file belong together');
  }
  if (!values['grpc-use-tls'] && caFile + certFile + keyFile !== '') {
    problems.push('certificate files are used with -grpc-use-tls only');
  }
  return problems;
}

if (import.meta.main) finish(await runClient(process.argv.slice(2)));
