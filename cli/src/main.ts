#!/usr/bin/env node
import { text } from 'node:stream/consumers';
import { stopSignals } from '@tollgate/kit/stop-signals';
import { exitCodes } from './failure.ts';
import { processTerminal } from './output/terminal.ts';
import { run } from './program.ts';

let stop: AbortController | undefined;

process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') {
    process.stderr.write(`standard output cannot be written: ${message}\n`);
    process.exit(exitCodes.failed);
  }
  // The reader of the pipe has closed it, as `head` does.
  if (stop === undefined) process.exit(0);
  stop.abort();
});
// There is nowhere left to say so.
process.stderr.on('error', () => {});

process.exitCode = await run(process.argv.slice(2), {
  terminal: processTerminal,
  env: process.env,
  readInput,
  interruption,
});

function readInput(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Reading standard input. Ctrl-D on an empty line ends it.\n');
  return text(process.stdin);
}

/** The second signal ends the process at once; programs that it started notice, and end. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  stop = controller;
  for (const signal of stopSignals)
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(exitCodes.failed);
      controller.abort();
    });
  return controller.signal;
}
