#!/usr/bin/env node
import { runClient } from './client/run-client.ts';
import { finish } from './flags/finish.ts';

finish(await runClient(process.argv.slice(2)));
