import {
  AppError,
  defineErrors,
  getErrorMessage,
  grpcStatus,
  isAppError,
  toPublicError,
} from '@tollgate/kit/errors';
import t from 'tap';

const errors = defineErrors({
  domain_empty: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unknown,
    message: 'rate limit domain must not be empty',
  },
  backend_failed: { httpStatus: 503, grpcStatus: grpcStatus.unavailable, message: 'Try again' },
});

t.test(
  'an error of the catalogue carries its code, statuses, public message, and log-only detail and cause',
  (t) => {
    const cause = new Error('ECONNREFUSED');
    const error = errors.backend_failed({ detail: 'redis 10.0.0.1', cause });
    t.ok(error instanceof AppError);
    t.equal(error.code, 'backend_failed');
    t.equal(error.httpStatus, 503);
    t.equal(error.grpcStatus, 14);
    t.equal(error.message, 'Try again');
    t.equal(error.detail, 'redis 10.0.0.1');
    t.equal(error.cause, cause);
    t.end();
  },
);

t.test('an occurrence can override the public message', (t) => {
  t.equal(errors.domain_empty({ message: 'no domain in line 3' }).message, 'no domain in line 3');
  t.equal(errors.domain_empty().message, errors.domain_empty.definition.message);
  t.end();
});

t.test('a code that is not snake_case is refused by defineErrors', (t) => {
  const definition = { httpStatus: 400, grpcStatus: grpcStatus.unknown, message: '' };
  t.throws(() => defineErrors({ domainEmpty: definition }), /domainEmpty/);
  t.throws(() => defineErrors({ domain_: definition }), /domain_/);
  t.end();
});

t.test('isAppError distinguishes AppErrors, and their codes', (t) => {
  t.equal(isAppError(errors.domain_empty()), true);
  t.equal(isAppError(errors.domain_empty(), 'domain_empty'), true);
  t.equal(isAppError(errors.domain_empty(), 'backend_failed'), false);
  t.equal(isAppError(new Error('domain_empty')), false);
  t.end();
});

t.test('only an AppError has a public message', (t) => {
  const shown = toPublicError(errors.backend_failed({ detail: 'secret host' }));
  t.same(shown, { code: 'backend_failed', httpStatus: 503, grpcStatus: 14, message: 'Try again' });
  t.same(toPublicError(new Error('password=hunter2')), {
    code: 'internal_error',
    httpStatus: 500,
    grpcStatus: 13,
    message: 'Internal error',
  });
  t.end();
});

t.test('an AggregateError without a message has those of its parts', async (t) => {
  const refused = ['::1', '127.0.0.1'].map((address) => new Error(`connect ECONNREFUSED ${address}`));
  t.equal(
    getErrorMessage(new AggregateError(refused)),
    'connect ECONNREFUSED ::1; connect ECONNREFUSED 127.0.0.1',
  );
  t.equal(getErrorMessage(new AggregateError(refused, 'no address answers')), 'no address answers');
  t.equal(getErrorMessage('text'), 'text');
});
