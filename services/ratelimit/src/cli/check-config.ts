#!/usr/bin/env node
import { finish } from '@tollgate/kit/cli';
import { checkRules } from './check-rules.ts';

finish(await checkRules(process.argv.slice(2)));
