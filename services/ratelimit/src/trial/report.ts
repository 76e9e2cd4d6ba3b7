import { alignColumns } from '@tollgate/kit/table';
import { compareText } from '@tollgate/kit/text';
import { statsNames } from '../metrics/names.ts';
import type { StatsRegistry } from '../metrics/registry.ts';
import type { TrialCounts, TrialSeries } from '../metrics/trial-series.ts';

/** The difference that rules on trial would make. Plain data, ready for JSON. */
export interface TrialReport {
  /** Absent without rules on trial. */
  readonly trial?: {
    readonly version: string;
    /** When the counts began, in RFC 3339. */
    readonly since: string;
    readonly domains: number;
    readonly rules: number;
  };
  /** Requests that were not compared, since the start of the process. */
  readonly notCompared: { readonly dropped: number; readonly failed: number };
  readonly domains: readonly (ComparedCounts & { readonly domain: string })[];
  /** Rules that requests have matched; those with the greatest difference come first. */
  readonly rules: readonly (ComparedCounts & {
    readonly domain: string;
    readonly rule: string;
    readonly limit: string;
  })[];
}

interface ComparedCounts extends Readonly<TrialCounts> {
  readonly wouldRefusePercent: number;
  readonly refusedPercent: number;
}

const noRulesOnTrial: TrialReport = { notCompared: { dropped: 0, failed: 0 }, domains: [], rules: [] };

export function createTrialReport(stats: StatsRegistry): TrialReport {
  const table = stats.trial();
  if (table === undefined || table.set.domains === 0) return noRulesOnTrial;
  const notCompared = {
    dropped: stats.counter(statsNames.trialDropped).value,
    failed: stats.counter(statsNames.trialFailed).value,
  };
  const { version, sinceMs, domains, rules } = table.set;
  const all = [...table.all()].sort(byDifference);
  return {
    trial: { version, since: new Date(sinceMs).toISOString(), domains, rules },
    notCompared,
    domains: all
      .filter(({ rule }) => rule === undefined)
      .map((series) => ({ domain: series.domain, ...toCounts(series) })),
    rules: all.flatMap((series) =>
      series.rule === undefined
        ? []
        : [{ domain: series.domain, rule: series.rule, limit: series.limit, ...toCounts(series) }],
    ),
  };
}

const difference = ({ newlyRefused, newlyAllowed }: TrialCounts) => newlyRefused + newlyAllowed;

const byDifference = (a: TrialSeries, b: TrialSeries): number =>
  difference(b) - difference(a) ||
  b.requests - a.requests ||
  compareText(a.rule ?? a.domain, b.rule ?? b.domain);

function toCounts({
  requests,
  wouldRefuse,
  refused,
  newlyRefused,
  newlyAllowed,
}: TrialCounts): ComparedCounts {
  return {
    requests,
    wouldRefuse,
    refused,
    newlyRefused,
    newlyAllowed,
    wouldRefusePercent: toPercent(wouldRefuse, requests),
    refusedPercent: toPercent(refused, requests),
  };
}

/** Rounds to one decimal. */
const toPercent = (part: number, whole: number): number =>
  whole === 0 ? 0 : Math.round((part * 1000) / whole) / 10;

const noTrial = `No rules are on trial. Put candidate rules into CANDIDATE_RUNTIME_SUBDIRECTORY, mark a RateLimitConfig with
spec.trial: true, or a limit of an AccessPolicy with mode: Trial.
`;

/** Rules in the text; JSON has all. */
const maxRows = 200;

export function formatTrialReport({ trial, notCompared, domains, rules }: TrialReport): string {
  if (trial === undefined) return noTrial;
  const { version, since } = trial;
  const { dropped, failed } = notCompared;
  const lines = [
    `candidate rules ${version}, counted since ${since}; rules: ${trial.rules}, domains: ${trial.domains}`,
    `not compared: ${dropped} dropped, ${failed} failed`,
    '',
  ];
  if (domains.length === 0) return [...lines, 'no requests yet', ''].join('\n');
  for (const domain of domains) {
    lines.push(
      `domain ${domain.domain}: ${domain.requests} requests, would refuse ${percent(domain.wouldRefusePercent)}, today ${percent(domain.refusedPercent)}`,
    );
  }
  const rows = rules.slice(0, maxRows).map((row) => [row.rule, row.limit, ...toCells(row)]);
  // Texts are aligned to the left, numbers to the right.
  lines.push('', ...alignColumns([header, ...rows], (column) => column >= 2));
  if (rules.length > maxRows) lines.push(`and ${rules.length - maxRows} more rules`);
  return `${lines.join('\n')}\n`;
}

const header = ['rule', 'limit', 'requests', 'would refuse', 'today', 'newly refused', 'newly allowed'];

const percent = (value: number): string => `${value.toFixed(1)} %`;

function toCells(counts: ComparedCounts): string[] {
  return [
    String(counts.requests),
    percent(counts.wouldRefusePercent),
    percent(counts.refusedPercent),
    String(counts.newlyRefused),
    String(counts.newlyAllowed),
  ];
}
