import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import { type TSchema, Type } from 'typebox';
import type { Context } from '../context.ts';
import { errors } from '../errors.ts';

/** The Fastify instance. Bodies have the type of their schema. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Adds the routes of a feature. */
export type AddRoutes = (api: Api, context: Context) => void;

/** `null` is removed before validation. */
export const optionalText = Type.Optional(Type.String());

export const optionalFlag = Type.Optional(Type.Boolean());

/** An object with any members: metadata. */
export const optionalObject = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

/** Clients may omit the body if all members are optional. */
export function body<T extends Record<string, TSchema>>(members: T) {
  return Type.Object(members);
}

const uuidForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @see RFC 9562 §4 https://www.rfc-editor.org/rfc/rfc9562#section-4 */
export function isUuid(text: string): boolean {
  return uuidForm.test(text);
}

/**
 * A UUID of the path, in lower case.
 *
 * @throws AppError `validation_failed` with 404: the resource does not exist.
 */
export function uuidParameter<K extends string>(parameters: Readonly<Record<K, string>>, name: K): string {
  const value = parameters[name];
  if (!isUuid(value)) throw errors.validation_failed({ message: `${name} must be an UUID`, httpStatus: 404 });
  return value.toLowerCase();
}

/**
 * The route in the notation of OpenTelemetry and OpenAPI, `/admin/users/{user_id}`. Undefined: no
 * route matched.
 */
export function routePattern(request: Pick<FastifyRequest, 'routeOptions'>): string | undefined {
  const { url } = request.routeOptions;
  return url === undefined || url === '*' ? undefined : url.replaceAll(/:(\w+)/g, '{$1}');
}

/** Names and values of the path parameters. */
export function routeParameters(
  request: Pick<FastifyRequest, 'params' | 'routeOptions'>,
): [string, string][] {
  if (routePattern(request) === undefined) return [];
  // Parsed boundary: the router returns an object of strings.
  return Object.entries((request.params ?? {}) as Readonly<Record<string, string>>);
}
