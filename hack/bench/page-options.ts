import { parseArgs } from 'node:util';

/** What a bench takes that is measured as a whole. */
export type ParsedPageOptions =
  | {
      readonly kind: 'run';
      /** A tenth of the time. */
      readonly quick: boolean;
      /** Write its page in docs, for which the time is never cut short. */
      readonly write: boolean;
    }
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly problem: string };

/** Reads command-line arguments. */
export function parsePageOptions(args: readonly string[]): ParsedPageOptions {
  const flag = { type: 'boolean', default: false } as const;
  try {
    const options = { quick: flag, write: flag, help: flag };
    const { quick, write, help } = parseArgs({ args: [...args], options }).values;
    return help ? { kind: 'help' } : { kind: 'run', quick: quick && !write, write };
  } catch (error) {
    return { kind: 'wrong', problem: error instanceof Error ? error.message : String(error) };
  }
}
