import { renderProtoCode } from './render-proto-code.ts';

/** Something in the repository that is made from something else, by code. */
export interface Generator {
  /** A folder that holds generated files and nothing else (with a trailing slash), or a file. */
  readonly output: string;
  /** The files as they should be, text by path from the root of the repository, all of them at or below `output`. */
  render(): Promise<ReadonlyMap<string, string>>;
}

/** All generated parts of the repository; a new one is one entry. */
export const generators: readonly Generator[] = [{ output: 'proto/generated/', render: renderProtoCode }];
