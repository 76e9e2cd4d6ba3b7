/** One instruction of a Dockerfile. */
export interface Instruction {
  /** In capitals: `COPY`. */
  readonly name: string;
  /** `--from=files` as `from`. */
  readonly options: Readonly<Record<string, string | undefined>>;
  /** All that comes after the options. */
  readonly text: string;
}

/** A part of a Dockerfile that makes a file system. */
export interface Stage {
  /** After `AS`; its number when it has none. */
  readonly name: string;
  /** The image or the stage that it begins with. */
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

/**
 * Reads a Dockerfile, as far as ours go: no here-documents, no ONBUILD, and no escape but `\` at the end of a line.
 *
 * @throws Error for an instruction before the first FROM that is not ARG.
 */
export function parseDockerfile(text: string): { args: readonly Instruction[]; stages: readonly Stage[] } {
  const args: Instruction[] = [];
  const stages: { name: string; base: string; instructions: Instruction[] }[] = [];
  for (const instruction of instructionsOf(text)) {
    const stage = stages.at(-1);
    if (instruction.name === 'FROM') {
      const [base = '', , name = String(stages.length)] = instruction.text.split(/\s+/);
      stages.push({ name, base, instructions: [] });
    } else if (stage !== undefined) stage.instructions.push(instruction);
    else if (instruction.name === 'ARG') args.push(instruction);
    else throw new Error(`${instruction.name} before the first FROM`);
  }
  return { args, stages };
}

function instructionsOf(text: string): Instruction[] {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*#/.test(line))
    .join('\n')
    .replace(/\s*\\\n\s*/g, ' ')
    .split('\n');
  return lines.filter((line) => line.trim() !== '').map(parseLine);
}

function parseLine(line: string): Instruction {
  const [, name = '', given = '', text = ''] = /^\s*(\w+)\s+((?:--\S+\s+)*)(.*)$/.exec(line) ?? [];
  const options = given
    .split(/\s+/)
    .filter((option) => option !== '')
    .map((option): [string, string] => {
      const [, key = '', value = ''] = /^--([^=]+)=?(.*)$/.exec(option) ?? [];
      return [key, value];
    });
  return { name: name.toUpperCase(), options: Object.fromEntries(options), text: text.trim() };
}

/** The pairs of ENV, LABEL or ARG: `a=1 b="2 3"`. One without a value has undefined. */
export function pairsOf(text: string): readonly (readonly [string, string | undefined])[] {
  return [...text.matchAll(/([\w.-]+)(?:=(?:"([^"]*)"|(\S*)))?/g)].map(([, name = '', quoted, bare]) => [
    name,
    quoted ?? bare,
  ]);
}
