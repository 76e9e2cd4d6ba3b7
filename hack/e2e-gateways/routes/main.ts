// Compares our route tables with Envoy Gateway: it translates random routes for a real Envoy,
// whose access log says which route takes each of 10,000 random requests.
// hack/e2e-gateways/run.sh runs it: [--seed=<number>] [--requests=<number>] [--record=<file>]
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { temporaryFolder } from '@tollgate/testkit/folders';
import {
  compareWithGateway,
  dependsOnOrder,
} from '../../../packages/policies/test/helpers/gateway-routes.ts';
import {
  randomWorlds,
  type World,
  type WorldRequest,
} from '../../../packages/policies/test/helpers/random-worlds.ts';
import { startRoutesGateway } from './gateway.ts';

/** Worlds of a corpus for the tests of packages/policies. */
const recordedWorlds = 12;

const { values: flags } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    requests: { type: 'string', default: '10000' },
    record: { type: 'string' },
  },
});
const seed = Number(flags.seed);
const worlds = randomWorlds(seed, Number(flags.requests));
console.log(`seed ${seed}: ${worlds.length} listeners, ${worlds.flatMap(({ rules }) => rules).length} rules`);

const folder = temporaryFolder();
const gateway = await startRoutesGateway(folder.path, worlds);
const startedMs = performance.now();
const cases = worlds.flatMap((world) => world.requests.map((one) => ({ world, request: one })));
const agents = new Map(worlds.map((world) => [world, new Agent({ keepAlive: true, maxSockets: 4 })]));
let next = 0;
await Promise.all(
  Array.from({ length: 16 }, async () => {
    for (let number = next++; number < cases.length; number = next++) await send(number);
  }),
);
for (const agent of agents.values()) agent.destroy();
/** A line of the access log of Envoy. Its path is the one that external authorization gets. */
interface LogLine {
  /** Null for requests until the gateway was ready. */
  readonly case: string | null;
  readonly route: string | null;
  readonly path: string;
}
const log = await awaitUntil(
  () => {
    // The file ends within a line, or after it.
    const lines = readFileSync(gateway.accessLog, 'utf8').split('\n').slice(0, -1);
    // Parsed boundary: the format of our own configuration.
    const own = lines.map((line) => JSON.parse(line) as LogLine).filter((line) => line.case !== null);
    return own.length >= cases.length && own;
  },
  { what: 'the access log' },
);
if (log === false) throw new TypeError('awaitUntil answers what is there');
const seconds = Math.round((performance.now() - startedMs) / 1_000);
await gateway.stop();

/** Requests with the rules that Envoy has matched. */
const answers = new Map<World, [request: WorldRequest, route: string | null][]>();
for (const world of worlds) answers.set(world, []);
let differences = 0;
let routed = 0;
for (const { case: number, route, path } of log) {
  const one = cases[Number(number)];
  if (one === undefined) throw new Error(`no case ${number}`);
  const envoys = parseRouteName(route);
  if (envoys !== undefined) routed += 1;
  const problem = compareWithGateway(one.world.rules, { ...one.request, path }, envoys);
  answers.get(one.world)?.push([{ ...one.request, path }, envoys ?? null]);
  if (problem === undefined) continue;
  differences += 1;
  if (differences <= 10)
    describe(one.world, { problem, envoys: envoys ?? 'none', path, request: one.request });
}
folder.remove();
if (flags.record !== undefined) {
  const all = [...answers].map(([{ rules }, requests]) => ({ rules, requests }));
  const weigh = ({ rules, requests }: (typeof all)[number]) =>
    requests.filter(([one]) => dependsOnOrder(rules, one)).length;
  const hardest = all.toSorted((a, b) => weigh(b) - weigh(a)).slice(0, recordedWorlds);
  const lines = hardest.map((one) => JSON.stringify(one));
  writeFileSync(flags.record, `${lines.join('\n')}\n`);
}
console.log(
  `${log.length} requests in ${seconds} s, ${routed} with a route: ${differences} differences (seed ${seed})`,
);
process.exit(differences === 0 && routed > log.length / 3 ? 0 : 1);

async function send(number: number): Promise<void> {
  const { world, request: one } = cases[number] ?? {};
  if (world === undefined || one === undefined) return;
  const headers = { ...one.headers, host: one.host, 'x-case': String(number) };
  const agent = agents.get(world);
  const outgoing = request({
    host: '127.0.0.1',
    port: gateway.portOf(world),
    ...{ agent, headers, path: one.path, method: one.method },
  });
  outgoing.end();
  const [response] = await once(outgoing, 'response');
  response.resume();
  await once(response, 'end');
}

/** `httproute/<namespace>/<name>/rule/<index>/…` as name and index. */
function parseRouteName(name: string | null): string | undefined {
  const found = /^httproute\/([^/]+\/[^/]+)\/rule\/(\d+)\//.exec(name ?? '');
  return found === null ? undefined : `${found[1]} ${found[2]}`;
}

interface Difference {
  readonly problem: string;
  readonly envoys: string;
  readonly path: string;
  readonly request: WorldRequest;
}

/** Prints a difference, with the rules that it is about. */
function describe({ rules }: World, difference: Difference): void {
  const { problem, envoys } = difference;
  console.log(JSON.stringify(difference));
  for (const rule of rules)
    if (problem.includes(rule.label) || rule.label === envoys) console.log(`  ${JSON.stringify(rule)}`);
}
