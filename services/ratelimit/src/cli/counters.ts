import { readFile } from 'node:fs/promises';
import { describeFlags, type FlagValues, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { parseDuration } from '@tollgate/kit/time';
import type { Entry } from '@tollgate/rules/match';
import { parseDescriptor } from '../ratelimit/request.ts';
import { type CounterCall, type CounterClientOptions, callCounterApi, type Json } from './counter-client.ts';
import { formatOverrides, formatPeek, formatRefusals, formatReset, formatTop } from './counter-tables.ts';

const command = 'tollgate-ratelimit counters';

const flags = {
  domain: { kind: 'text', value: 'name', doc: 'The domain; of top and refusals all domains by default.' },
  descriptors: {
    kind: 'list',
    value: 'key=value,...',
    doc: 'The entries of a descriptor, such as name=foo,age=14.',
  },
  prefix: {
    kind: 'list',
    value: 'key=value,key2',
    doc: 'Of reset: the first entries of descriptors; the last one may be without =value. Empty for the whole domain.',
  },
  'requests-per-unit': { kind: 'text', value: 'n', doc: 'Of override: the limit, in the unit of the rule.' },
  burst: {
    kind: 'text',
    value: 'n',
    doc: 'Of override: the size of a token bucket; default that of -requests-per-unit.',
  },
  ttl: {
    kind: 'text',
    value: 'duration',
    doc: 'Of override and reserve: how long it lasts, such as 30m or 48h.',
  },
  hits: { kind: 'text', value: 'n', doc: 'Of reserve and commit: the number of hits.' },
  id: { kind: 'text', value: 'text', doc: 'Of commit: the id of the reservation.' },
  reason: { kind: 'text', value: 'text', doc: 'Of override: why, for the audit line.' },
  limit: { kind: 'text', value: 'n', doc: 'Of lists: their maximum length.' },
  address: {
    kind: 'text',
    value: 'url',
    doc: 'The counter API; default http://127.0.0.1:$ADMIN_PORT, with https when ADMIN_TLS_CERT is set.',
  },
  'token-file': { kind: 'text', value: 'file', doc: 'File with the token; default $ADMIN_TOKEN.' },
  'ca-file': {
    kind: 'text',
    value: 'file',
    doc: 'PEM file with the certificate authorities of the server; default those of the system.',
  },
  'cert-file': { kind: 'text', value: 'file', doc: 'PEM file with the client certificate.' },
  'key-file': { kind: 'text', value: 'file', doc: 'PEM file with its private key.' },
  timeout: { kind: 'text', value: 'duration', default: '10s', doc: 'Timeout of the call.' },
  json: { kind: 'switch', doc: 'Print the response as JSON.' },
} as const;

type Values = FlagValues<typeof flags>;

interface Command {
  readonly doc: string;
  /** The call, or what is wrong with the flags. */
  readonly toCall: (values: Values) => CounterCall | readonly string[];
  readonly format: (reply: Json) => string;
}

const commands: Readonly<Record<string, Command>> = {
  peek: {
    doc: 'Print limit, count and reset of descriptors. Counts nothing.',
    toCall: (values) => withDescriptors(values, (request) => post('/v1/counters/peek', request)),
    format: formatPeek,
  },
  reset: {
    doc: 'Reset the counters of descriptors, or of all descriptors that begin with -prefix.',
    toCall: toResetCall,
    format: formatReset,
  },
  override: {
    doc: 'Set another limit for a descriptor: -requests-per-unit (and -burst of a token bucket) for -ttl, with a -reason.',
    toCall: toOverrideCall,
    format: (reply) => formatOverrides({ overrides: [reply] }),
  },
  'remove-override': {
    doc: 'Remove the override of a descriptor.',
    toCall: (values) =>
      withDescriptors(values, (body) => ({ method: 'DELETE', path: '/v1/overrides', body })),
    format: () => 'the override was removed\n',
  },
  overrides: {
    doc: 'Print the overrides in force.',
    toCall: (values) => toListCall('/v1/overrides', values),
    format: formatOverrides,
  },
  reserve: {
    doc: 'Reserve -hits of all limits of descriptors for -ttl (default 1m), and print the id. Exits with 3 when that exceeds a limit.',
    toCall: toReserveCall,
    format: ({ id, until }) => `${id}\nuntil ${until}\n`,
  },
  commit: {
    doc: 'Replace the hits of the reservation -id by the real number, -hits.',
    toCall: ({ id, hits }) =>
      id === '' || hits === ''
        ? ['-id and -hits are needed']
        : post('/v1/reservations/commit', { id, hits: Number(hits) }),
    format: ({ hits, reserved, over }) =>
      `${hits} counted, ${reserved} were reserved${over === true ? ': over the limit' : ''}\n`,
  },
  top: {
    doc: 'Print the descriptors with the most hits in the last one to two minutes.',
    toCall: (values) => toListCall('/v1/top', values),
    format: formatTop,
  },
  refusals: {
    doc: 'Print the last descriptors that were over their limit.',
    toCall: (values) => toListCall('/v1/refusals', values),
    format: formatRefusals,
  },
};

const help = `${command} <command> [flags]

Reads and changes the counters of a running service by its counter API (ADMIN_PORT).

${Object.entries(commands)
  .map(([name, { doc }]) => `  ${name}\n        ${doc}\n`)
  .join('')}
${describeFlags(flags)}
Flags are written with one dash or two. Exits with 0 on success, 1 when the call failed, 2 when the arguments are invalid.
`;

/** Runs the command with the arguments after `counters`. */
export async function runCounters(
  [name = '-help', ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Outcome> {
  const chosen = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const parsed = parseFlags(flags, chosen === undefined && name.startsWith('-') ? [name] : args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (chosen === undefined) {
    return wrongUsage(command, [
      `unknown command '${name}': expected one of ${Object.keys(commands).join(', ')}`,
    ]);
  }
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const call = chosen.toCall(parsed.values);
  if (!('path' in call)) return wrongUsage(command, call);
  const address = parsed.values.address || defaultAddress(env);
  const timeoutMs = parseDuration(parsed.values.timeout) ?? 0;
  const problems = [
    ...(URL.canParse(address) ? [] : ['-address is needed, such as http://127.0.0.1:6071']),
    ...(timeoutMs > 0 ? [] : ['-timeout is a duration above 0 such as 5s or 300ms']),
  ];
  if (problems.length > 0) return wrongUsage(command, problems);
  try {
    const options = await toClientOptions(parsed.values, { address, timeoutMs, env });
    const { status, json } = await callCounterApi(options, call);
    if (status !== 200) {
      return { exitCode: status === 429 ? 3 : 1, errors: `${json.code}: ${json.message}\n` };
    }
    const output = parsed.values.json ? `${JSON.stringify(json, null, 2)}\n` : chosen.format(json);
    return { exitCode: 0, output };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { exitCode: 1, errors: `the call to ${address} failed: ${reason}\n` };
  }
}

/** In the container of a service, its own counter API. Empty without one. */
function defaultAddress({ ADMIN_PORT = '', ADMIN_TLS_CERT = '' }: NodeJS.ProcessEnv): string {
  return ADMIN_PORT === '' ? '' : `${ADMIN_TLS_CERT === '' ? 'http' : 'https'}://127.0.0.1:${ADMIN_PORT}`;
}

async function toClientOptions(
  values: Values,
  { env, ...rest }: { readonly address: string; readonly timeoutMs: number; readonly env: NodeJS.ProcessEnv },
): Promise<CounterClientOptions> {
  const tokenFile = values['token-file'];
  const token = tokenFile === '' ? (env.ADMIN_TOKEN ?? '') : (await readFile(tokenFile, 'utf8')).trim();
  return {
    ...rest,
    token,
    caFile: values['ca-file'],
    certFile: values['cert-file'],
    keyFile: values['key-file'],
  };
}

function post(path: string, body: unknown): CounterCall {
  return { method: 'POST', path, body };
}

function toResetCall(values: Values): CounterCall | readonly string[] {
  const [prefix, ...more] = values.prefix;
  if (prefix === undefined) {
    return withDescriptors(values, (request) => post('/v1/counters/reset', request));
  }
  if (values.domain === '') return ['-domain is needed'];
  if (more.length > 0 || values.descriptors.length > 0)
    return ['-prefix is given once, without -descriptors'];
  const parts = prefix === '' ? [] : prefix.split(',');
  const entries = parts.map((part) => {
    const [key, ...value] = part.split('=');
    return { key, ...(value.length > 0 && { value: value.join('=') }) };
  });
  return post('/v1/counters/reset', { domain: values.domain, prefix: entries });
}

function toOverrideCall(values: Values): CounterCall | readonly string[] {
  const ttlSeconds = Math.round((parseDuration(values.ttl) ?? 0) / 1000);
  const problems = [
    ...(values['requests-per-unit'] === '' ? ['-requests-per-unit is needed'] : []),
    ...(ttlSeconds < 1 ? ['-ttl is a duration of a second or more, such as 30m or 48h'] : []),
    ...(values.reason === '' ? ['-reason is needed'] : []),
  ];
  const call = withDescriptors(values, (request) => ({
    method: 'PUT',
    path: '/v1/overrides',
    body: {
      ...request,
      requestsPerUnit: Number(values['requests-per-unit']),
      ...(values.burst !== '' && { burst: Number(values.burst) }),
      ttlSeconds,
      reason: values.reason,
    },
  }));
  return 'path' in call && problems.length === 0 ? call : [...('path' in call ? [] : call), ...problems];
}

function toReserveCall(values: Values): CounterCall | readonly string[] {
  const ttlSeconds = Math.round((parseDuration(values.ttl || '1m') ?? 0) / 1000);
  if (values.hits === '') return ['-hits is needed'];
  return withDescriptors(values, (request) =>
    post('/v1/reservations', { ...request, hits: Number(values.hits), ttlSeconds }),
  );
}

function toListCall(path: string, { domain, limit }: Values): CounterCall {
  const query = new URLSearchParams({ ...(domain !== '' && { domain }), ...(limit !== '' && { limit }) });
  return { method: 'GET', path: `${path}?${query}` };
}

interface DescriptorsRequest {
  readonly domain: string;
  readonly descriptors: readonly { readonly entries: readonly Entry[] }[];
}

function withDescriptors(
  { domain, descriptors }: Values,
  toCall: (request: DescriptorsRequest) => CounterCall,
): CounterCall | readonly string[] {
  const parsed = descriptors.map(parseDescriptor);
  const problems = [
    ...(domain === '' ? ['-domain is needed'] : []),
    ...(descriptors.length === 0 ? ['-descriptors is needed'] : []),
    ...parsed.flatMap((result) => (result.ok ? [] : [`-descriptors: ${result.problem}`])),
  ];
  if (problems.length > 0) return problems;
  return toCall({
    domain,
    descriptors: parsed.flatMap((result) => (result.ok ? [{ entries: result.entries }] : [])),
  });
}
