#!/usr/bin/env node
import { text } from 'node:stream/consumers';
import { stopSignals } from '@tollgate/kit/stop-signals';
import { processTerminal } from './output/terminal.ts';
import { run } from './program.ts';

process.exitCode = await run(process.argv.slice(2), {
  terminal: processTerminal,
  env: process.env,
  readInput: () => text(process.stdin),
  interruption,
});

/** The second signal ends the process at once; programs that it started notice, and end. */
function interruption(): AbortSignal {
  const stop = new AbortController();
  for (const signal of stopSignals)
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort();
    });
  // The reader of the pipe has closed it, as `head` does.
  process.stdout.on('error', () => stop.abort());
  return stop.signal;
}
