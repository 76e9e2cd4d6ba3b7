import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { writeEnvironment } from '../../cli/src/up/environment.ts';
import { consolePart, newAdministrator, signInSettings } from '../../cli/src/up/parts.ts';
import { PartFailure, Platform } from '../../cli/src/up/platform.ts';
import { createAdmin } from './admin.ts';
import { choosePorts, describeMoved, type Ports, waitForWindowMs } from './options.ts';
import { createTable, type Paint, type Table, tryIt } from './output.ts';
import { createParts, StartOutput, shopPart } from './parts.ts';
import { PolicyFolder } from './policies.ts';
import { type Step, scenario } from './scenario.ts';
import { createPerson, createStory, perform, performAfter, type Story } from './story.ts';
import { sendTraffic } from './traffic.ts';

/** The process of the demo, as arguments. */
export interface DemoProcess {
  /** Writes text that the user sees. */
  readonly write: (text: string) => void;
  readonly paint: Paint;
  /** Aborts when the user has seen enough. */
  readonly signal: AbortSignal;
  /** Milliseconds since the Unix epoch. */
  readonly nowMs: () => number;
}

/**
 * Starts the platform, shows the scenario as a table, and stays until the signal aborts, or with
 * `once` ends there. Nothing is left running and no file behind, whatever happens.
 *
 * @returns the exit code: 0; 1 when a part failed, or with `once` when a row did not come out as
 * expected or none was seen.
 */
export async function runDemo({ once }: { readonly once: boolean }, demo: DemoProcess): Promise<number> {
  const { write, paint, signal } = demo;
  const folder = temporaryFolder();
  let platform: Platform | undefined;
  const output = new StartOutput(write);
  try {
    const ports = await choosePorts();
    const moved = describeMoved(ports);
    if (moved !== undefined) write(`${moved}\n`);
    const policies = new PolicyFolder(join(folder.path, 'policies'));
    await policies.write();
    const jwtSecret = randomBytes(32).toString('base64url');
    const gateway = `http://127.0.0.1:${ports.envoy}`;
    const options = {
      ports,
      folder: folder.path,
      policiesFolder: policies.path,
      jwtSecret,
      limiterToken: randomBytes(32).toString('base64url'),
      auth: {
        externalUrl: `${gateway}/auth`,
        settings: { ...authSettings(gateway), ...signInSettings(ports) },
      },
    };
    const administrator = newAdministrator();
    const parts = [...(await createParts(options, shopPart(options))), consolePart(options, administrator)];
    platform = await Platform.start(parts, signal, output);

    const story = makeStory(ports, { jwtSecret, policies, signal });
    const allAsExpected = await showScenario(story, demo);
    const failure = platform.failure();
    if (failure !== undefined) throw failure;
    if (once) return allAsExpected ? 0 : 1;
    // Undoes the edits of the scenario: what is left to be tried starts from the policies as they
    // are written.
    await policies.write();
    const environmentFile = await writeEnvironment(folder.path, options);
    write(tryIt({ ports, policies, jwtSecret, person: story.bob, administrator, environmentFile }));
    // The user sees the effect of edits, and errors in them.
    output.showLog();
    await Promise.all([platform.untilStopped(signal), sendTraffic({ ports, jwtSecret, signal })]);
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

function authSettings(gateway: string): Record<string, string> {
  return {
    SVC_SITE_URL: `${gateway}/catalogue`,
    SVC_API_KEYS_ENABLED: 'true',
    SVC_ORGANIZATIONS_ENABLED: 'true',
  };
}

function makeStory(
  ports: Ports,
  { jwtSecret, policies, signal }: { jwtSecret: string; policies: PolicyFolder; signal: AbortSignal },
): Story {
  const gatewayUrl = `http://127.0.0.1:${ports.envoy}`;
  const directUrl = `http://127.0.0.1:${ports.authHttp}`;
  const person = (name: string) =>
    createPerson({ name, authUrl: `${gatewayUrl}/auth`, mailboxUrl: `${directUrl}/dev/mail`, signal });
  return createStory({
    gatewayUrl,
    signal,
    ada: person('ada'),
    bob: person('bob'),
    admin: createAdmin({ url: directUrl, jwtSecret }),
    policies,
  });
}

/** Answers whether every row has the expected result. */
async function showScenario(story: Story, { write, paint, signal, nowMs }: DemoProcess): Promise<boolean> {
  const waitMs = waitForWindowMs(nowMs());
  if (waitMs > 0) {
    write(
      `\nwaiting ${Math.ceil(waitMs / 1000)} s for the next hour: windows end now, and counters with them\n`,
    );
    await delay(waitMs, undefined, { signal });
  }
  const table = createTable(scenario, paint);
  write(`\n${table.head}\n`);
  let asExpected = 0;
  for (const step of scenario) {
    write(`${table.title(step)}\n`);
    const shown = await showStep(step, { story, table, write, signal });
    asExpected += shown.asExpected;
    if (!shown.answered) break;
  }
  const all = scenario.reduce((sum, step) => sum + step.rows.length, 0);
  const summary = `${asExpected} of ${all} as expected`;
  write(`\n${paint(asExpected === all ? 'green' : 'red', summary)}\n`);
  return asExpected === all;
}

interface Stage {
  readonly story: Story;
  readonly table: Table;
  readonly write: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Does and shows each row of a step; ends at the first without an answer, since none after it will
 * get one.
 */
async function showStep(
  { change, rows }: Step,
  { story, table, write, signal }: Stage,
): Promise<{ asExpected: number; answered: boolean }> {
  let asExpected = 0;
  for (const [index, row] of rows.entries()) {
    const made = index === 0 ? change : undefined;
    const outcome = await (made === undefined
      ? perform(row, story, signal)
      : performAfter(made, row, { story, signal }));
    write(`${table.row(row, outcome)}\n`);
    if (!outcome.answered) return { asExpected, answered: false };
    if (!outcome.asExpected) continue;
    asExpected++;
    if (made !== undefined)
      write(`       in force ${Math.round(outcome.tookMs)} ms after ${made.after(story)}\n`);
  }
  return { asExpected, answered: true };
}
