#!/usr/bin/env node
import { text } from 'node:stream/consumers';
import { processTerminal } from './output/terminal.ts';
import { run } from './program.ts';

process.exitCode = await run(process.argv.slice(2), {
  terminal: processTerminal,
  env: process.env,
  readInput: () => text(process.stdin),
});
