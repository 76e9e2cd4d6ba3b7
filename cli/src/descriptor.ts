import { parseDescriptor } from '@tollgate/rules/descriptor-text';
import { CommandFailure } from './failure.ts';

/** An entry of a descriptor. */
export interface Entry {
  readonly key: string;
  readonly value: string;
}

/**
 * Reads a descriptor: `user=ann,plan=pro`, or JSON for texts with `=` or `,`:
 * `[{"key":"path","value":"/a=b"}]`.
 *
 * @throws CommandFailure
 */
export function readDescriptor(text: string): Entry[] {
  const result = parseDescriptor(text);
  if (!result.ok)
    throw new CommandFailure(`not a descriptor: ${text}. Expected key=value,key2=value2, or entries in JSON`);
  return result.entries.map(({ key, value }) => ({ key, value }));
}
