import {
  type Environment,
  pairs,
  parseSettings,
  type Setting,
  type SettingProblem,
  type SettingsCheck,
  text,
} from '@tollgate/kit/settings';
import { RE2JS } from 're2js';
import { statsSettings } from './stats.ts';

const group = 'Statistics';
const { useTagStatsd, tagStatsdMogrifiers } = statsSettings;

/** Rewrites the names that a pattern matches: TAGSTATSD_MOGRIFIER_<NAME>_*. */
export interface Mogrifier {
  /** May match anywhere in the name. */
  readonly pattern: RE2JS;
  /** The new name, with captures such as `$1`. */
  readonly name: string;
  /** Further tags, with captures in their values. */
  readonly tags: Readonly<Record<string, string>>;
}

type Read =
  | { readonly ok: true; readonly mogrifiers: readonly Mogrifier[] }
  | { readonly ok: false; readonly problems: readonly SettingProblem[] };

/** Reads the settings of each mogrifier that TAGSTATSD_MOGRIFIERS names. */
export function readMogrifiers(env: Environment): Read {
  const switches = parseSettings({ useTagStatsd, tagStatsdMogrifiers }, env);
  // Their problems are reported with those of all settings.
  if (!switches.ok || !switches.settings.useTagStatsd) return { ok: true, mogrifiers: [] };
  const reads = switches.settings.tagStatsdMogrifiers.map((name) => readMogrifier(name, env));
  const problems = reads.flatMap((read) => (read.ok ? [] : read.problems));
  if (problems.length > 0) return { ok: false, problems };
  return { ok: true, mogrifiers: reads.flatMap((read) => (read.ok ? [read.settings] : [])) };
}

function readMogrifier(mogrifier: string, env: Environment) {
  const spec = {
    pattern: pattern(names(mogrifier, 'PATTERN')),
    name: text({
      ...names(mogrifier, 'NAME'),
      group,
      required: true,
      matches: { pattern: /^[^\s:|]+$/, form: 'the new name, without spaces, : and |' },
      doc: 'New name of a statistic.',
    }),
    tags: pairs({ ...names(mogrifier, 'TAGS'), group, default: {}, doc: 'Further tags.' }),
  };
  const tagsHaveValues: SettingsCheck<typeof spec> = ({ tags }, { problem }) => {
    if (Object.values(tags).every((value) => value !== '')) return undefined;
    return problem('tags', 'a value for each tag, key:value');
  };
  return parseSettings(spec, env, { checks: [tagsHaveValues] });
}

function names(mogrifier: string, part: string) {
  return {
    env: `TAGSTATSD_MOGRIFIER_${mogrifier}_${part}`,
    aliases: [`DOG_STATSD_MOGRIFIER_${mogrifier}_${part}`],
  };
}

/** RE2 takes linear time, and has the syntax of Go, which existing patterns are written in. */
function pattern(variables: ReturnType<typeof names>): Setting<RE2JS> {
  const form = 'a regular expression in the syntax of Go';
  const source = text({ ...variables, group, required: true, doc: 'Which statistics are rewritten.' });
  return {
    ...source,
    form,
    fallback: undefined,
    parse: (value) => {
      if (value === '') return undefined;
      try {
        return RE2JS.compile(value);
      } catch {
        return undefined;
      }
    },
  };
}
