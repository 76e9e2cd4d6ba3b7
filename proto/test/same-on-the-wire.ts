import { fromBinary, fromJson, type JsonValue, type Message, toBinary, toJson } from '@bufbuild/protobuf';
import type { GenMessage } from '@bufbuild/protobuf/codegenv2';
import type { Test } from 'tap';

/**
 * Message in two forms: in proto3's JSON mapping for ours, as the plain object that proto-loader
 * takes for Envoy's.
 */
export interface Twins {
  ours: JsonValue;
  envoys: object;
}

/** Both definitions must write the same bytes, and each must read what the other wrote. */
export function sameOnTheWire<T extends Message>(
  t: Test,
  schema: GenMessage<T>,
  twins: Twins,
  serialize: (message: object) => Buffer,
  deserialize: (bytes: Buffer) => object,
): void {
  const ourBytes = Buffer.from(toBinary(schema, fromJson(schema, twins.ours)));
  const envoysBytes = serialize(twins.envoys);
  t.equal(ourBytes.toString('hex'), envoysBytes.toString('hex'), 'same bytes');
  t.same(plain(deserialize(ourBytes)), plain(twins.envoys), 'Envoy reads ours');
  const canonical = toJson(schema, fromJson(schema, twins.ours));
  t.same(toJson(schema, fromBinary(schema, envoysBytes)), canonical, 'we read theirs');
}

/** Our definition must write these bytes, and read them as the same message. */
export function isOnTheWire<T extends Message>(
  t: Test,
  schema: GenMessage<T>,
  json: JsonValue,
  hex: string,
): void {
  const bytes = Buffer.from(hex.replaceAll(' ', ''), 'hex');
  t.equal(Buffer.from(toBinary(schema, fromJson(schema, json))).toString('hex'), bytes.toString('hex'));
  t.same(toJson(schema, fromBinary(schema, bytes)), json);
}

/** Without the prototypes of proto-loader's objects, and with bytes as base64. */
export function plain(message: object): unknown {
  return JSON.parse(JSON.stringify(message));
}
