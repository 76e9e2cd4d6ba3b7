#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { runClient } from './run-client.ts';

finish(await runClient(process.argv.slice(2)));
