import { runTool } from '../check/run-checks.ts';

/**
 * Text as biome formats a file of that name, so that a generated one passes the same check as one written by hand.
 *
 * @throws Error with biome's output when it cannot.
 */
export async function formatWithBiome(path: string, text: string): Promise<string> {
  const { ok, output } = await runTool(
    'biome',
    ['format', `--stdin-file-path=${path}`, '--colors=off'],
    text,
  );
  if (!ok) throw new Error(`${path}: ${output}`);
  return output;
}
