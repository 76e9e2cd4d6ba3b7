/** One line of the report. Contains no secrets. */
export interface Finding {
  readonly subject: string;
  readonly text: string;
}

/** The state of a database. */
export interface DatabaseReport {
  /** Where it is, without the password. */
  readonly where: string;
  readonly server: string;
  readonly schema: string;
  readonly tollgateHasRun: boolean;
  /** The newest in GoTrue's list; empty when it has none. */
  readonly latestMigrationOfGotrue: string;
  readonly pendingMigrations: readonly string[];
  /** Tables and `table.column` that the pending migrations add. */
  readonly adds: readonly string[];
  /** Counts of rows that matter to a switch. */
  readonly rows: readonly Finding[];
}

/** The result of the check. */
export interface CheckReport {
  readonly wouldStart: boolean;
  readonly stops: readonly Finding[];
  readonly withoutEffect: readonly Finding[];
  readonly differences: readonly Finding[];
  /** Absent when no database is named, or none answers. */
  readonly database?: DatabaseReport;
}

/** Writes a report for the terminal. */
export function formatReport(report: CheckReport): string {
  const { stops, database } = report;
  const verdict = report.wouldStart
    ? 'The server would start.'
    : `The server would not start: ${stops.length === 1 ? '1 problem' : `${stops.length} problems`}.`;
  return [
    verdict,
    ...section('Stops the start', stops),
    ...section('Has no effect', report.withoutEffect),
    ...section('Works differently', report.differences),
    ...(database === undefined ? [] : databaseSection(database)),
    '',
    'docs/coming-from-gotrue.md has all differences, and the steps of a switch.',
    '',
  ].join('\n');
}

function section(title: string, findings: readonly Finding[]): string[] {
  return findings.length === 0
    ? []
    : ['', title, ...findings.map(({ subject, text }) => `  ${subject}: ${text}`)];
}

function databaseSection(database: DatabaseReport): string[] {
  const { latestMigrationOfGotrue: latest, pendingMigrations, adds } = database;
  const history = [
    `schema ${database.schema}`,
    ...(latest === '' ? [] : [`at migration ${latest} of GoTrue${dateOf(latest)}`]),
    database.tollgateHasRun ? 'Tollgate has run on it' : 'Tollgate has not run on it yet',
  ];
  return [
    '',
    `${database.where} (${database.server}): ${history.join(', ')}`,
    `  migrations to run: ${list(pendingMigrations)}`,
    `  they add: ${list(adds)}`,
    ...database.rows.map(({ subject, text }) => `  ${subject}: ${text}`),
  ];
}

/** The names of its migrations begin with their date. */
function dateOf(migration: string): string {
  const [, year, month, day] = /^(\d{4})(\d\d)(\d\d)\d{6}$/.exec(migration) ?? [];
  return year === undefined ? '' : ` (${year}-${month}-${day})`;
}

function list(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
