import { type Command, InvalidArgumentError } from 'commander';
import { checkCall, openGrpc, rateLimitCall } from '../bench/grpc.ts';
import { drawHistogram, formatMs } from '../bench/histogram.ts';
import { openHttp } from '../bench/http.ts';
import { type Connection, type LoadResult, runLoad } from '../bench/load.ts';
import { resolveTarget, type Target } from '../bench/target.ts';
import { readDescriptor } from '../descriptor.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import { type Environment, group, type LocalOptions, localCommand, parseInterval } from './command.ts';

interface BenchOptions extends LocalOptions {
  readonly connections: number;
  readonly rate: number;
  readonly duration: number;
  readonly allowHost?: string;
}

interface RequestOptions extends BenchOptions {
  readonly method: string;
  readonly header: readonly string[];
  readonly tokenStdin?: true;
}

/** `tollgate bench`: how fast a target on this machine responds. */
export function benchCommands(environment: Environment): Command {
  return group('bench', 'Send a bounded load to a target on this machine, and show how fast it responds.', [
    httpCommand(environment),
    rateLimitCommand(environment),
    extAuthzCommand(environment),
  ]);
}

function benchCommand(name: string, summary: string, examples: readonly string[]): Command {
  return localCommand(name, summary, examples)
    .option('--connections <number>', 'Connections, 1 to 256.', parseBounded(1, 256), 10)
    .option('--rate <number>', 'Requests a second, 1 to 50000.', parseBounded(1, 50_000), 100)
    .option('--duration <duration>', 'How long, 1s to 5m.', parseInterval(1_000, 300_000), 10_000)
    .option('--allow-host <host>', 'Allow a target that is not this machine, by its name.');
}

function requestCommand(name: string, summary: string, examples: readonly string[]): Command {
  return benchCommand(name, summary, examples)
    .option('--method <method>', 'Method of the requests.', 'GET')
    .option('--header <name: value...>', 'Headers of the requests.', [])
    .option('--token-stdin', 'Read a bearer token from standard input.');
}

function httpCommand(environment: Environment): Command {
  return requestCommand('http', 'Send requests to a URL, such as that of Envoy.', [
    'tollgate bench http http://127.0.0.1:10000/orders --rate 500 --duration 30s --token-stdin < token',
  ])
    .argument('<url>', 'http://host:port/path')
    .action(async (text: string, options: RequestOptions) => {
      if (!URL.canParse(text) || !text.startsWith('http://'))
        throw new CommandFailure(`not a target: ${text}. Expected http://host:port/path`);
      const { hostname, port, pathname, search } = new URL(text);
      const target = await resolveTarget(`${hostname}:${port || 80}`, options.allowHost);
      const request = {
        ...{ method: options.method, path: `${pathname}${search}` },
        headers: await readHeaders(environment, options),
      };
      await bench(environment, options, () => openHttp(target, request, timeoutMs));
    });
}

function rateLimitCommand(environment: Environment): Command {
  return benchCommand('ratelimit', 'Ask a rate limit service over gRPC. Its counters count.', [
    'tollgate bench ratelimit 127.0.0.1:8081 --domain shop user=bench --connections 4',
  ])
    .argument('<target>', 'host:port of its gRPC port.')
    .argument('<descriptor>', 'A descriptor: key=value,key2=value2, or entries in JSON.')
    .requiredOption('--domain <name>', 'Domain of the limits.')
    .action(async (text: string, descriptor: string, options: BenchOptions & { readonly domain: string }) => {
      const call = rateLimitCall(options.domain, readDescriptor(descriptor));
      const target = await resolveTarget(text, options.allowHost);
      await bench(environment, options, () => openGrpc(target, call, timeoutMs));
    });
}

function extAuthzCommand(environment: Environment): Command {
  return requestCommand('ext-authz', 'Ask an auth server over gRPC, as Envoy does.', [
    'tollgate bench ext-authz 127.0.0.1:9001 --host shop.example.com --path /orders --token-stdin < token',
  ])
    .argument('<target>', 'host:port of its port for ext_authz over gRPC.')
    .option('--host <host>', 'Host of the request.', 'localhost')
    .option('--path <path>', 'Path of the request.', '/')
    .action(
      async (text: string, options: RequestOptions & { readonly host: string; readonly path: string }) => {
        const { method, host, path } = options;
        const call = checkCall({ method, host, path, headers: await readHeaders(environment, options) });
        const target: Target = await resolveTarget(text, options.allowHost);
        await bench(environment, options, () => openGrpc(target, call, timeoutMs));
      },
    );
}

/** Time for a response. */
const timeoutMs = 5_000;

async function readHeaders(
  { readInput }: Environment,
  { header, tokenStdin }: RequestOptions,
): Promise<Record<string, string>> {
  const headers = header.map((text) => {
    const [, name = '', value = ''] = /^([!#$%&'*+\-.^_`|~\w]+):\s*(.*)$/.exec(text) ?? [];
    if (name === '') throw new CommandFailure(`not a header: ${text}. Expected name: value`);
    return [name.toLowerCase(), value];
  });
  const token = tokenStdin ? (await readInput()).trim() : '';
  return { ...Object.fromEntries(headers), ...(token !== '' && { authorization: `Bearer ${token}` }) };
}

async function bench(
  { terminal, interruption }: Environment,
  options: BenchOptions,
  open: () => Connection,
): Promise<void> {
  const signal = interruption();
  const { connections, rate, duration } = options;
  const opened = Array.from({ length: connections }, open);
  const result = await runLoad(opened, { rate, durationMs: duration, signal });
  if (options.json) printJson(terminal, toJson(result, signal.aborted));
  else printResult(terminal, result, options);
  if (signal.aborted) terminal.warn('Stopped early: the result is that of the requests until then.');
  if (result.requests > 0 && result.failures === result.requests)
    throw new CommandFailure('no request had a response: check the target', exitCodes.failed);
}

const percentiles = { p50: 0.5, p90: 0.9, p99: 0.99 } as const;

function toJson({ seconds, requests, outcomes, failures, durations }: LoadResult, isPartial: boolean) {
  const milliseconds = Object.entries(percentiles).map(([name, part]) => [name, durations.percentile(part)]);
  return {
    ...{ seconds, requests, failures, isPartial, outcomes: Object.fromEntries(outcomes) },
    milliseconds: { ...Object.fromEntries(milliseconds), max: durations.maxMs },
    histogram: durations.ranges(),
  };
}

function printResult(
  { print }: Terminal,
  { seconds, requests, outcomes, durations }: LoadResult,
  { connections, rate }: BenchOptions,
): void {
  const actual = seconds > 0 ? requests / seconds : 0;
  print(
    `${requests} requests in ${seconds.toFixed(1)} s, ${actual.toFixed(1)} a second (wanted: ${rate}), ${connections} connections\n\n`,
  );
  for (const [outcome, count] of outcomes) print(`${String(count).padStart(8)}  ${outcome}\n`);
  const ranges = durations.ranges();
  if (ranges.length === 0) return;
  const values = Object.entries(percentiles).map(
    ([name, part]) => `${name} ${formatMs(durations.percentile(part) ?? 0)}`,
  );
  print(`\n${[...values, `max ${formatMs(durations.maxMs)}`].join('   ')}\n\n`);
  for (const line of drawHistogram(ranges)) print(`${line}\n`);
}

function parseBounded(min: number, max: number) {
  return (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`);
    return value;
  };
}
