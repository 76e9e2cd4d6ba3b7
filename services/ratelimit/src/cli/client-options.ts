import { describeFlags, type FlagValues, parseFlags } from '@tollgate/kit/cli';
import { parseDuration } from '@tollgate/kit/time';
import { parseDescriptor } from '@tollgate/rules/descriptor-text';
import type { Entry } from '@tollgate/rules/match';

export interface ClientOptions {
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

export interface ClientTlsFiles {
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
    doc: 'The entries of a descriptor, such as name=foo,age=14, or in JSON [{"key":"path","value":"/a=b"}].',
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

export const clientHelp = `tollgate-ratelimit-client -domain <name> -descriptors <key=value,...> [flags]

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
