#!/usr/bin/env node
import { runCheck } from './check-config/run-check.ts';
import { finish } from './flags/finish.ts';

finish(await runCheck(process.argv.slice(2)));
