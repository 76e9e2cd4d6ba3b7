import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { load } from 'js-yaml';
import type { ManifestObject } from './manifest-object.ts';
import { objectsOf } from './rendered-chart.ts';

/** A file of `examples/`, by its path from the root of the checkout. */
export interface ExampleFile {
  readonly path: string;
  readonly text: string;
  /** None in files of values for helm. */
  readonly objects: readonly ManifestObject[];
}

/** All YAML files of `examples/`. */
export async function readExamples(): Promise<readonly ExampleFile[]> {
  const found = await readdir('examples', { recursive: true });
  const paths = found.filter((path) => path.endsWith('.yaml')).map((path) => join('examples', path));
  return await Promise.all(paths.sort().map(readExample));
}

async function readExample(path: string): Promise<ExampleFile> {
  const text = await readFile(path, 'utf8');
  return { path, text, objects: path.endsWith('-values.yaml') ? [] : objectsOf(text) };
}

/** The one object of a kind in a file. @throws Error when there is none. */
export function exampleObject(
  files: readonly ExampleFile[],
  path: string,
  kind: string,
): ManifestObject & { readonly spec: unknown } {
  const object = exampleFile(files, path).objects.find((one) => one.kind === kind);
  if (object === undefined) throw new Error(`${path} has no ${kind}`);
  return { ...object, spec: object.spec };
}

/** A file by its path. @throws Error when there is none. */
export function exampleFile(files: readonly ExampleFile[], path: string): ExampleFile {
  const file = files.find((one) => one.path === path);
  if (file === undefined) throw new Error(`there is no ${path}`);
  return file;
}

/** A YAML document that a ConfigMap holds. */
export function configOf({ data, metadata }: ManifestObject, key: string): unknown {
  // Parsed boundary: a ConfigMap.
  const text = (data as Readonly<Record<string, string>> | undefined)?.[key];
  if (text === undefined) throw new Error(`the ConfigMap ${metadata.name} has no ${key}`);
  return load(text);
}
