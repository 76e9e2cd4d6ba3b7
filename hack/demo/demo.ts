import { cp } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { judge } from './judge.ts';
import { PartFailure, type Platform, parts, startPlatform, untilStopped } from './platform.ts';
import { applyEdit, ask, askUntilAsExpected, type Target } from './play.ts';
import { choosePorts, describeMoved } from './ports.ts';
import { type Step, scenario } from './scenario.ts';
import { createTable, type Paint, type Table } from './table.ts';
import { tryIt } from './try-it.ts';
import { waitForWindowMs } from './window-margin.ts';

/** What the demo has from the process that runs it. */
export interface DemoDeps {
  /** Writes text that the user sees. */
  readonly write: (text: string) => void;
  readonly paint: Paint;
  /** Aborts when the user has seen enough. */
  readonly signal: AbortSignal;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number;
  /** The Node.js to run services with. */
  readonly nodePath: string;
}

const rulesSource = resolve(import.meta.dirname, 'config');

/**
 * Starts the platform, shows the scenario as a table, and stays until the signal aborts, or with `once` ends there.
 * Nothing is left running and no file behind, whatever happens.
 *
 * @returns the exit code: 0; 1 when a part failed, or with `once` when a row did not come out as expected or none was seen.
 */
export async function runDemo({ once }: { readonly once: boolean }, deps: DemoDeps): Promise<number> {
  const { write, paint, signal, nodePath } = deps;
  const folder = temporaryFolder();
  let platform: Platform | undefined;
  try {
    const rulesFolder = join(folder.path, 'config');
    await cp(rulesSource, rulesFolder, { recursive: true });
    const ports = await choosePorts();
    const moved = describeMoved(ports);
    if (moved !== undefined) write(`${moved}\n`);
    platform = await startPlatform(parts, { ports, folder: folder.path, nodePath, signal }, write);
    write(`rules: ${rulesFolder} (copied from hack/demo/config)\n\n`);

    const target = { url: `http://127.0.0.1:${ports.envoy}`, signal };
    const allAsExpected = await showScenario(target, rulesFolder, deps);
    const failure = platform.failure();
    if (failure !== undefined) throw failure;
    if (once) return allAsExpected ? 0 : 1;
    // Undoes the edits of the scenario: what is left to be tried starts from the rules as they are written.
    await cp(rulesSource, rulesFolder, { recursive: true });
    write(tryIt(ports, rulesFolder));
    await untilStopped(platform, signal, write);
    return 0;
  } catch (error) {
    if (signal.aborted) return once ? 1 : 0;
    if (!(error instanceof PartFailure)) throw error;
    write(`\n${paint('red', error.message)}\n`);
    for (const line of error.lastLines) write(`  ${line}\n`);
    write(`${error.hint}\n`);
    return 1;
  } finally {
    if (signal.aborted) write('\nstopping … ');
    await platform?.stop();
    folder.remove();
    if (signal.aborted) write('stopped\n');
  }
}

/** Answers whether every row came out as expected. */
async function showScenario(
  target: Target,
  rulesFolder: string,
  { write, paint, signal, nowMs }: DemoDeps,
): Promise<boolean> {
  const waitMs = waitForWindowMs(nowMs());
  if (waitMs > 0) {
    write(
      `waiting ${Math.ceil(waitMs / 1000)} s for the next hour: windows end now, and counters with them\n`,
    );
    await delay(waitMs, undefined, { signal });
  }
  const table = createTable(scenario, paint);
  write(`${table.head}\n`);
  let asExpected = 0;
  for (const step of scenario) {
    write(`${table.title(step)}\n`);
    const rows = await showStep(step, target, { rulesFolder, table, write });
    asExpected += rows.asExpected;
    if (rows.unanswered) break;
  }
  const all = scenario.reduce((sum, step) => sum + step.rows.length, 0);
  const verdict = `${asExpected} of ${all} requests came out as expected`;
  write(`\n${paint(asExpected === all ? 'green' : 'red', verdict)}\n`);
  return asExpected === all;
}

/** Sends the requests of a step and shows each; ends at the first that nobody answers, since none after it will be. */
async function showStep(
  { edit, rows }: Step,
  target: Target,
  { rulesFolder, table, write }: { rulesFolder: string; table: Table; write: (text: string) => void },
): Promise<{ asExpected: number; unanswered: boolean }> {
  let asExpected = 0;
  for (const [index, row] of rows.entries()) {
    const edited = index === 0 ? edit : undefined;
    const startedMs = performance.now();
    if (edited !== undefined) await applyEdit(edited, rulesFolder);
    const outcome = await (edited === undefined ? ask(row, target) : askUntilAsExpected(row, target));
    const tookMs = Math.round(performance.now() - startedMs);
    const lines = outcome.answered ? table.row(row, outcome.answer) : table.unanswered(row, outcome.reason);
    for (const line of lines) write(`${line}\n`);
    if (!outcome.answered) return { asExpected, unanswered: true };
    if (judge(row.expect, outcome.answer).length > 0) continue;
    asExpected++;
    if (edited !== undefined)
      write(
        `       ${edited.file}: "${edited.from}" is now "${edited.to}", in force ${tookMs} ms after saving\n`,
      );
  }
  return { asExpected, unanswered: false };
}
