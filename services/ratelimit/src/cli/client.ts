#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli/finish';
import { runClient } from './client/run-client.ts';

finish(await runClient(process.argv.slice(2)));
