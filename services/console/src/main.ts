#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { exitOnStopSignal } from '@tollgate/kit/stop-signals';
import { handleArguments } from './cli/arguments.ts';

const outcome = handleArguments(process.argv.slice(2));
if (outcome !== undefined) {
  finish(outcome);
  process.exit();
}
// Signals work before the code of the service is loaded, which takes longest.
const takeOver = exitOnStopSignal({ signals: process, exit: (code) => process.exit(code) });
const { serve } = await import('./cli/serve.ts');
await serve(takeOver);
