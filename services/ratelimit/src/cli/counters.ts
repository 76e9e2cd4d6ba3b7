import { isIP } from 'node:net';
import { describeFlags, type FlagValues, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { getErrorMessage } from '@tollgate/kit/errors';
import { parseDuration } from '@tollgate/kit/time';
import { entryListForm, isEntryList, parseDescriptor, parseEntryList } from '@tollgate/rules/descriptor-text';
import type { Entry } from '@tollgate/rules/match';
import { type CounterCall, callCounterApi, getOwnAddress, type Json } from './counter-client.ts';
import { formatOverrides, formatPeek, formatRefusals, formatReset, formatTop } from './counter-tables.ts';

const command = 'tollgate-ratelimit counters';

const flags = {
  domain: { kind: 'text', value: 'name', doc: 'The domain; of top and refusals all domains by default.' },
  descriptors: {
    kind: 'list',
    value: 'key=value,...',
    doc: 'The entries of a descriptor, such as name=foo,age=14, or in JSON [{"key":"path","value":"/a=b"}].',
  },
  prefix: {
    kind: 'list',
    value: 'key=value,key2',
    doc: 'Of reset: the first entries of descriptors; the last one may be without =value. Empty for the whole domain. In JSON as well.',
  },
  'requests-per-unit': { kind: 'text', value: 'n', doc: 'Of override: the limit, in the unit of the rule.' },
  burst: {
    kind: 'text',
    value: 'n',
    doc: 'Of override: the size of a token bucket, at least 1; by default it changes in proportion to -requests-per-unit.',
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
    doc: 'The counter API; default that of this container: $ADMIN_HOST and $ADMIN_PORT, with https when ADMIN_TLS_CERT is set.',
  },
  'token-file': { kind: 'text', value: 'file', doc: 'File with the token; default $ADMIN_TOKEN.' },
  'ca-file': {
    kind: 'text',
    value: 'file',
    doc: 'PEM file with the certificate authorities of the server; default those of the system, without -address the certificate of $ADMIN_TLS_CERT only.',
  },
  'server-name': {
    kind: 'text',
    value: 'name',
    doc: 'DNS name in the certificate of the server; default the host of -address.',
  },
  'cert-file': {
    kind: 'text',
    value: 'file',
    doc: 'PEM file with the client certificate; default, without -address and with ADMIN_TLS_CLIENT_CACERT, $ADMIN_TLS_CERT.',
  },
  'key-file': {
    kind: 'text',
    value: 'file',
    doc: 'PEM file with its private key; default $ADMIN_TLS_KEY then.',
  },
  timeout: { kind: 'text', value: 'duration', default: '10s', doc: 'Timeout of the call.' },
  json: { kind: 'switch', doc: 'Print the response as JSON, also that of a failed call.' },
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
  const { values } = parsed;
  const call = chosen.toCall(values);
  const address = values.address || getOwnAddress(env);
  const timeoutMs = parseDuration(values.timeout) ?? 0;
  const problems = [
    ...findInvalidNumbers(values),
    ...('path' in call ? [] : call),
    ...(URL.canParse(address) ? [] : ['-address is needed, such as http://127.0.0.1:6071']),
    ...(timeoutMs > 0 ? [] : ['-timeout is a duration above 0 such as 5s or 300ms']),
    ...(isIP(values['server-name']) === 0 ? [] : ['-server-name is a DNS name, not an address']),
  ];
  if (!('path' in call) || problems.length > 0) return wrongUsage(command, problems);
  try {
    const { status, json } = await callCounterApi({ flags: values, env, timeoutMs }, call);
    const output = `${JSON.stringify(json, null, 2)}\n`;
    if (status === 200) return { exitCode: 0, output: values.json ? output : chosen.format(json) };
    const errors = `${json.code}: ${json.message}\n`;
    return { exitCode: status === 429 ? 3 : 1, errors, ...(values.json && { output }) };
  } catch (error) {
    return { exitCode: 1, errors: `the call to ${address} failed: ${getErrorMessage(error)}\n` };
  }
}

/** `Number` of anything else is NaN, which is null in JSON, as if the flag was absent. */
function findInvalidNumbers(values: Values): string[] {
  const names = ['requests-per-unit', 'burst', 'hits', 'limit'] as const;
  return names
    .filter((name) => !/^\d*$/.test(values[name]))
    .map((name) => `-${name} is a whole number, not '${values[name]}'`);
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
  const entries = isEntryList(prefix) ? parseEntryList(prefix) : splitPrefix(prefix);
  if (entries === undefined) return [`-prefix: '${prefix}' is not ${entryListForm}`];
  return post('/v1/counters/reset', { domain: values.domain, prefix: entries });
}

function splitPrefix(text: string): unknown[] {
  const parts = text === '' ? [] : text.split(',');
  return parts.map((part) => {
    const [key, ...value] = part.split('=');
    return { key, ...(value.length > 0 && { value: value.join('=') }) };
  });
}

const ttlProblem = '-ttl is a duration of a second or more, such as 30m or 48h';

function toOverrideCall(values: Values): CounterCall | readonly string[] {
  const ttlSeconds = Math.round((parseDuration(values.ttl) ?? 0) / 1000);
  const problems = [
    ...(values['requests-per-unit'] === '' ? ['-requests-per-unit is needed'] : []),
    ...(ttlSeconds < 1 ? [ttlProblem] : []),
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
  if (values.hits === '' || ttlSeconds < 1) {
    return [...(values.hits === '' ? ['-hits is needed'] : []), ...(ttlSeconds < 1 ? [ttlProblem] : [])];
  }
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
