import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import type { Test } from 'tap';

/** Starts a command of a page, which is stopped with the test. Returns its output so far. */
export function runExample(
  t: Pick<Test, 'teardown'>,
  command: string,
  variables: Readonly<Record<string, string>> = {},
) {
  const words = command.trim().split(' ');
  const nodeAt = words.indexOf('node');
  const given = words.slice(0, nodeAt).map((word) => word.split('=', 2));
  const env = programEnvironment({ ...Object.fromEntries(given), ...variables });
  const child = spawn(process.execPath, words.slice(nodeAt + 1), {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const exited = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGINT');
    await exited;
  });
  return async (pattern: RegExp): Promise<string> => {
    const match = () => pattern.exec(output)?.[1];
    return (await awaitUntil(match, { what: `${pattern} of ${command}`, timeoutMs: 250_000 })) ?? '';
  };
}
