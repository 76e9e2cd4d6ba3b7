/**
 * Work in small steps: whoever runs it may let other work in between. Pure code cannot know how long is too long; its
 * caller can.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Descriptors that are worth a step: together they take less than a millisecond, and a step costs next to nothing of it. */
export const descriptorsPerStep = 64;

/** Runs work to its end at once. */
export function runSteps<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
