// make bench and make bench-…: measures what Tollgate costs on this machine, over loopback only.
import { parseArgs } from 'node:util';
import { benchAuth } from './auth.ts';
import { benchClient } from './client/client.ts';
import { benchConsole } from './console/console.ts';
import { benchLimiter } from './limiter.ts';
import { formatMachine, isBusy, watchOtherUse } from './machine.ts';
import { benchPlatform } from './platform.ts';
import { benchPolicies } from './policies/policies.ts';
import { type BenchOptions, formatReport, omitTails, type Report, writePage } from './report.ts';
import { benchXds } from './xds/xds.ts';

const benches: Readonly<Record<string, (options: BenchOptions) => Promise<Report>>> = {
  limiter: benchLimiter,
  client: benchClient,
  xds: benchXds,
  auth: benchAuth,
  platform: benchPlatform,
  policies: benchPolicies,
  console: benchConsole,
};

const usage = `node hack/bench/main.ts [${Object.keys(benches).join('|')}]... [options]
  limiter    services/ratelimit: decisions per second and their cost, time to load rules;
             PEER_RATELIMIT=<path> measures the Go limiter in turns with ours and prints ratios
  client     client-sdk beside bare fetch, openid-client and simple-oauth2
  xds        services/xds: from an edit until it is enforced, many objects, many streams
  auth       services/auth: sign-in, GET /user, refresh; lists of 1,000 and 1,000,000 users
  platform   ext_authz checks, and what both filters add to a request through Envoy
  policies   access policies: from an edit until it is enforced, memory of the auth server
  console    every page of services/console with 100,000 users and 10,000 limits
All of them without a name. Each takes two to four minutes (auth eight), and a quarter of that with --quick.

  --quick             a tenth of the time: for trying, not for comparing
  --write             write the pages docs/benchmarks*.md (not with --quick or --node-flag)
  --node-flag=<flag>  a flag of Node for the services, such as --cpu-prof (may be repeated)
  --help              print this
`;

interface Arguments {
  readonly names: readonly string[];
  readonly quick: boolean;
  readonly write: boolean;
  readonly nodeFlags: readonly string[];
}

/** @throws Error that says what is wrong. */
function parseArguments(args: readonly string[]): Arguments {
  const flag = { type: 'boolean', default: false } as const;
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { quick: flag, write: flag, 'node-flag': { type: 'string', multiple: true, default: [] } },
  });
  const unknown = positionals.find((name) => !(name in benches));
  if (unknown !== undefined)
    throw new Error(`unknown benchmark ${unknown}: use ${Object.keys(benches).join(', ')}`);
  const { quick, write, 'node-flag': nodeFlags } = values;
  if (write && (quick || nodeFlags.length > 0))
    throw new Error('--write cannot be combined with --quick or --node-flag');
  return { names: positionals.length === 0 ? Object.keys(benches) : positionals, quick, write, nodeFlags };
}

async function run({ names, quick, write, nodeFlags }: Arguments): Promise<void> {
  for (const [name, bench] of Object.entries(benches).filter(([name]) => names.includes(name))) {
    const otherUse = watchOtherUse();
    const startedAt = performance.now();
    const progress = (what: string) => process.stderr.write(`bench: ${name}: ${what}\n`);
    const report = await bench({ quick, write, nodeFlags, progress });
    const use = otherUse();
    const machine = formatMachine(report, use);
    process.stdout.write(`\n${formatReport(report, machine)}\n`);
    const page = isBusy(use) ? omitTails(report) : report;
    if (write) process.stderr.write(`bench: wrote ${writePage(page, machine)}\n`);
    progress(`done in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
}

const args = process.argv.slice(2);
// Services end with this process, whatever ends it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(130));
if (args.includes('--help')) process.stdout.write(usage);
else
  try {
    await run(parseArguments(args));
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exitCode = 1;
  }
