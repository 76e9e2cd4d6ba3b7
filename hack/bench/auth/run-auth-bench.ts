import { readProcessUsage } from '../process-usage.ts';
import { type Column, formatTable } from '../report/format-table.ts';
import { type AuthService, startAuthService } from './auth-service.ts';
import { type LoopResult, runClosedLoop } from './closed-loop.ts';
import { prepare, type Scenario, scenarios } from './scenarios.ts';

/** How long. */
export interface AuthBenchOptions {
  readonly warmUpMs: number;
  readonly durationMs: number;
}

/** A scenario with what it came to. */
interface ScenarioResult extends LoopResult {
  readonly name: string;
  readonly connections: number;
  /** CPU time of the server per request, PostgreSQL not included. */
  readonly cpuMs: number;
  /** Resident memory of the server at the end. */
  readonly rssBytes: number;
}

/** What the server does on this machine. */
export interface AuthBenchReport {
  readonly alone: readonly ScenarioResult[];
  /** Both at the same time: a few connections that ask for the user, and many that sign in. */
  readonly storm: readonly [user: LoopResult, signIn: LoopResult];
}

/** Connections that sign in during the storm: far more than cores, fewer than the queue takes. */
const stormConnections = 12;

/** Starts a server and measures one scenario after the other. */
export async function runAuthBench(
  options: AuthBenchOptions,
  progress: (text: string) => void = () => {},
): Promise<AuthBenchReport> {
  const service = await startAuthService();
  try {
    const alone: ScenarioResult[] = [];
    for (const scenario of Object.values(scenarios)) {
      progress(`${scenario.name}\n`);
      alone.push(await measure(scenario, service, options));
    }
    progress('the storm\n');
    return { alone, storm: await measureStorm(service, options) };
  } finally {
    await service.stop();
  }
}

async function measure(
  scenario: Scenario,
  { pid, port }: AuthService,
  { warmUpMs, durationMs }: AuthBenchOptions,
): Promise<ScenarioResult> {
  const { askers, close } = await prepare(scenario, port);
  try {
    await runClosedLoop(askers, warmUpMs);
    const before = readProcessUsage(pid);
    const result = await runClosedLoop(askers, durationMs);
    const after = readProcessUsage(pid);
    const cpuMs = (after.cpuMs - before.cpuMs) / result.requests;
    return {
      name: scenario.name,
      connections: scenario.connections,
      ...result,
      cpuMs,
      rssBytes: after.rssBytes,
    };
  } finally {
    close();
  }
}

async function measureStorm(
  { port }: AuthService,
  { durationMs }: AuthBenchOptions,
): Promise<readonly [LoopResult, LoopResult]> {
  const user = await prepare(scenarios.user, port, 4);
  const signIn = await prepare(scenarios.signIn, port, stormConnections);
  try {
    return await Promise.all([
      runClosedLoop(user.askers, durationMs),
      runClosedLoop(signIn.askers, durationMs),
    ]);
  } finally {
    user.close();
    signIn.close();
  }
}

/** Lays a report out for a terminal. */
export function formatAuthBench(report: AuthBenchReport): string {
  return authBenchTables(report, formatTable)
    .map(({ title, table }) => `${title}\n${table}`)
    .join('\n\n');
}

/** The tables of a report, each laid out by `layOut`. */
export function authBenchTables(
  { alone, storm: [user, signIn] }: AuthBenchReport,
  layOut: <Row>(columns: readonly Column<Row>[], rows: readonly Row[]) => string,
): { title: string; table: string }[] {
  const storm = [
    { name: scenarios.user.name, ...user },
    { name: scenarios.signIn.name, ...signIn },
  ];
  return [
    { title: 'One thing at a time', table: layOut([...loopColumns, ...costColumns], alone) },
    { title: 'Users are asked for while passwords are checked', table: layOut(loopColumns, storm) },
  ];
}

const loopColumns: readonly Column<LoopResult & { readonly name: string }>[] = [
  { head: '', cell: ({ name }) => name, align: 'left' },
  { head: 'requests/s', cell: ({ perSecond }) => perSecond.toFixed(0) },
  { head: 'p50 ms', cell: ({ p50Ms }) => p50Ms.toFixed(1) },
  { head: 'p99 ms', cell: ({ p99Ms }) => p99Ms.toFixed(1) },
];

const costColumns: readonly Column<ScenarioResult>[] = [
  { head: 'server CPU ms each', cell: ({ cpuMs }) => cpuMs.toFixed(2) },
  { head: 'connections', cell: ({ connections }) => String(connections) },
  { head: 'memory MB', cell: ({ rssBytes }) => (rssBytes / 1e6).toFixed(0) },
];
