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

/** The application that routes are added to: the type of a body is that of its schema. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** Adds the routes of one area to the application. */
export type AddRoutes = (api: Api, context: Context) => void;

/** A member that may be absent; `null` is taken for absent before schemas are looked at. */
export const optionalText = Type.Optional(Type.String());

/** Yes or no. */
export const optionalFlag = Type.Optional(Type.Boolean());

/** An object whose members nobody looks at: metadata. */
export const optionalObject = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

/** A body, or none at all: clients leave it out where every member may be absent. */
export function body<T extends Record<string, TSchema>>(members: T) {
  return Type.Object(members);
}

const form = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Has the text the form of a UUID? @see RFC 9562 §4 https://www.rfc-editor.org/rfc/rfc9562#section-4 */
export function isUuid(text: string): boolean {
  return form.test(text);
}

/** A UUID of the path, in lower case. @throws AppError `validation_failed` with 404: whatever has no such form names nothing. */
export function uuidParameter<K extends string>(parameters: Readonly<Record<K, string>>, name: K): string {
  const value = parameters[name];
  if (!isUuid(value)) throw errors.validation_failed({ message: `${name} must be an UUID`, httpStatus: 404 });
  return value.toLowerCase();
}

/** The route of a request as OpenTelemetry and OpenAPI write it, `/admin/users/{user_id}`; undefined when it met none. */
export function routePattern(request: Pick<FastifyRequest, 'routeOptions'>): string | undefined {
  const { url } = request.routeOptions;
  return url === undefined || url === '*' ? undefined : inBraces(url);
}

/** Rewrites `/admin/users/:user_id` as `/admin/users/{user_id}`. */
function inBraces(url: string): string {
  return url.replaceAll(/:(\w+)/g, '{$1}');
}

/** The values of a route's parameters, by name. */
export function routeParameters(
  request: Pick<FastifyRequest, 'params' | 'routeOptions'>,
): [string, string][] {
  if (routePattern(request) === undefined) return [];
  // Parsed boundary: the router makes an object of texts.
  return Object.entries((request.params ?? {}) as Readonly<Record<string, string>>);
}
