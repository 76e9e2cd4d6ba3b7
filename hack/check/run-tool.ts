import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Finding } from './run-checks.ts';

/** Longer than any tool here takes on a cold, busy machine. */
const toolTimeoutMs = 120_000;

/** Runs a program of node_modules/.bin in the current folder with `input` on its standard input; ok when it exits with 0. */
export async function runTool(command: string, args: readonly string[], input = ''): Promise<Finding> {
  const child = spawn(command, args, { stdio: 'pipe', timeout: toolTimeoutMs });
  // A program that reads nothing may be gone before the input is written.
  child.stdin.on('error', () => {}).end(input);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const [code, signal] = await once(child, 'close');
  return {
    ok: code === 0,
    output: signal === null ? output : `${output}\n${command} was ended by ${signal}`,
  };
}
