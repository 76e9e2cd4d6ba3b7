import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import type { Steps } from '../time.ts';

/**
 * Decodes a message whose repeated fields may have tens of thousands of elements, one element per
 * step; it would otherwise be decoded without a break.
 *
 * @param elements called with each element of a field, by the number of the field; these fields
 *   stay empty in the message.
 * @throws Error when the bytes are not such a message.
 */
export function* decodeInSteps<Desc extends DescMessage>(
  schema: Desc,
  bytes: Uint8Array,
  elements: ReadonlyMap<number, (element: Uint8Array) => void>,
): Steps<MessageShape<Desc>> {
  const reader = new BinaryReader(bytes);
  const rest: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    const onElement = wireType === WireType.LengthDelimited ? elements.get(field) : undefined;
    if (onElement === undefined) {
      reader.skip(wireType, field);
      rest.push(bytes.subarray(start, reader.pos));
    } else {
      onElement(reader.bytes());
      yield;
    }
  }
  return fromBinary(schema, Buffer.concat(rest));
}
