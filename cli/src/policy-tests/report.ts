import { escapeControls } from '@tollgate/kit/table';
import { formatFinding } from '@tollgate/policies/files/finding';
import { style, type Terminal } from '../output/terminal.ts';
import { formatLimit, formatOutcome } from '../policies/format-outcome.ts';
import type { Place } from '../policies/places.ts';
import type { Outcome } from '../policies/simulator.ts';
import type { FailedStep, TestResult } from './run.ts';
import type { FileResult } from './run-files.ts';

/** Numbers of tests; a file whose tests cannot run counts as a failed one. */
export function countResults(files: readonly FileResult[]): {
  readonly passed: number;
  readonly failed: number;
} {
  const results = files.flatMap((file) => file.results);
  const passed = results.filter(({ failed }) => failed === undefined).length;
  return {
    passed,
    failed: results.length - passed + files.filter(({ problems }) => problems.length > 0).length,
  };
}

/** Prints all results: expected, got, and the lines that decided. */
export function printResults(terminal: Terminal, files: readonly FileResult[]): void {
  for (const { file, problems, results } of files) {
    for (const problem of problems) terminal.print(`${style(terminal, 'red', formatFinding(problem))}\n`);
    for (const result of results) printResult(terminal, file, result);
  }
  const { passed, failed } = countResults(files);
  const color = failed === 0 ? 'green' : 'red';
  terminal.print(`${style(terminal, color, `${passed} passed, ${failed} failed`)}\n`);
}

function printResult(terminal: Terminal, file: string, { name, line, failed }: TestResult): void {
  const title = escapeControls(name);
  if (failed === undefined) {
    terminal.print(`${style(terminal, 'green', 'ok')}      ${title}\n`);
    return;
  }
  terminal.print(`${style(terminal, 'red', 'FAILED')}  ${title} (${file}:${line})\n`);
  for (const text of describeFailure(failed)) terminal.print(`        ${escapeControls(text)}\n`);
}

function describeFailure({ number, step, repetition, differences, outcome, problem }: FailedStep): string[] {
  const { spec, as, line } = step;
  const { times = 1, request = '' } = spec;
  const of = times > 1 ? `, request ${repetition} of ${times}` : '';
  const lines = [
    `step ${number} (line ${line})${of}: ${request} ${as ? `as ${as}` : 'without a credential'}`,
  ];
  for (const { what, expected, got } of differences)
    lines.push(`  ${what}: expected ${expected}, got ${got}`);
  if (problem !== undefined) lines.push(`  ${problem}`);
  return outcome === undefined ? lines : [...lines, ...describeOutcome(outcome)];
}

function describeOutcome(outcome: Outcome): readonly string[] {
  const { decidedBy, limits } = outcome;
  return [
    `  got ${formatOutcome(outcome)}`,
    ...(decidedBy === undefined ? [] : [`  by ${formatPlace(decidedBy)}`]),
    ...limits.map((limit) => `  limit ${limit.name}: ${formatLimit(limit)}`),
  ];
}

function formatPlace({ file, line, text }: Place): string {
  return `${file}:${line}: ${text}`;
}
