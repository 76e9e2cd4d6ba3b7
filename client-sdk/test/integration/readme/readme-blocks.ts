import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';

/** The code blocks of the README below a heading, with what they import taken out. */
export interface ReadmeProgram {
  /** By specifier, the names imported from it. */
  readonly imports: ReadonlyMap<string, readonly string[]>;
  readonly blocks: readonly string[];
}

const page = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');

/**
 * The blocks of one section, by its heading; of what comes before the first heading without one.
 */
export function readmeSection(heading?: string): ReadmeProgram {
  const sections = page.split(/^## /m);
  const section =
    heading === undefined ? sections[0] : sections.find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`the README has no section ${heading}`);
  const imports = new Map<string, readonly string[]>();
  const blocks = Array.from(section.matchAll(/```ts\n([\s\S]*?)```/g), ([, code = '']) =>
    code.replace(/^import \{(.*)\} from '(.*)';\n/gm, (_line, names: string, specifier: string) => {
      imports.set(
        specifier,
        names.split(',').map((name) => name.trim()),
      );
      return '';
    }),
  );
  return { imports, blocks };
}

/** Replacements in the code by the text that they replace, such as the name of the server. */
export type Replacements = Readonly<Record<string, string>>;

/**
 * Runs the blocks of sections one after the other, as one program. `scope` are the names that the
 * page speaks of in prose; `result` is an expression.
 */
export async function runReadme(
  programs: readonly ReadmeProgram[],
  {
    scope,
    replacements,
    result,
    between = '',
  }: {
    readonly scope: Readonly<Record<string, unknown>>;
    readonly replacements: Replacements;
    readonly result: string;
    /** Code between two blocks: what the reader, or a user, does. */
    readonly between?: string;
  },
): Promise<unknown> {
  const names: Record<string, unknown> = { ...scope };
  for (const { imports } of programs)
    for (const [specifier, imported] of imports) {
      const loaded: Record<string, unknown> = await import(specifier);
      for (const name of imported) names[name] = loaded[name];
    }
  let code = programs.flatMap(({ blocks }) => blocks).join(`\n${between}\n`);
  for (const [from, to] of Object.entries(replacements)) {
    if (!code.includes(from)) throw new Error(`the README does not say ${from}`);
    code = code.replaceAll(from, to);
  }
  // The constructor of async functions has no name of its own.
  const AsyncFunction = (async () => undefined).constructor as FunctionConstructor;
  const program = new AsyncFunction(
    ...Object.keys(names),
    `${stripTypeScriptTypes(code)}\nreturn ${result};`,
  );
  return await program(...Object.values(names));
}
