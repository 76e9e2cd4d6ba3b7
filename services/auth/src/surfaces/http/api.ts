import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Services } from '../../services.ts';

/** The application that routes are added to: the type of a body is that of its schema. */
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/** What routes take: the services, and a clock for the facts of requests. */
export interface RouteDeps extends Services {
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
}

/** Adds the routes of one area to the application. */
export type AddRoutes = (api: Api, deps: RouteDeps) => void;
