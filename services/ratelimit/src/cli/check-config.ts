#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { runCheck } from './run-check.ts';

finish(await runCheck(process.argv.slice(2)));
