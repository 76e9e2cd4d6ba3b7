import { type LoadedRouteRules, loadRouteRules } from '../authz-rules/route-rules-file.ts';
import { defaultRules, routeRuleWarnings } from '../domain/authz/route-rules.ts';
import { settingsSpec } from '../settings/settings.ts';
import { loadSettings } from './load-settings.ts';
import { type AskedRequest, rulesTable, verdictsTable } from './routes-table.ts';
import type { Command } from './run-command.ts';

/** `routes`: checks a file of rules, and prints them, or which of them decides on requests; a bad file is the exit code 1. */
export const routesCommand: Command = async ({ environmentFiles, args, flags }) => {
  if (args.length % 2 === 1) {
    process.stderr.write(
      `${args.at(-1)} stands alone: a request is a method and a path, such as GET /docs\n`,
    );
    process.exitCode = 2;
    return;
  }
  const file = flags.file ?? (await loadSettings(environmentFiles)).settings.extAuthzRoutesFile;
  const loaded = await loadRules(file);
  if (!loaded.ok) {
    process.stderr.write(`${loaded.problems.join('\n')}\n`);
    process.exitCode = 1;
    return;
  }
  if (file === '')
    process.stderr.write(
      `no file is set (${settingsSpec.extAuthzRoutesFile.env}): these rules hold without one\n`,
    );
  for (const warning of routeRuleWarnings(loaded.rules)) process.stderr.write(`warning: ${warning}\n`);
  const asked = pairsOf(args);
  process.stdout.write(asked.length === 0 ? rulesTable(loaded.rules) : verdictsTable(loaded.rules, asked));
};

async function loadRules(file: string): Promise<LoadedRouteRules> {
  return file === '' ? { ok: true, rules: defaultRules } : loadRouteRules(file);
}

function pairsOf(args: readonly string[]): AskedRequest[] {
  return args.flatMap((method, index) =>
    index % 2 === 0 ? [{ method: method.toUpperCase(), path: args[index + 1] ?? '' }] : [],
  );
}
