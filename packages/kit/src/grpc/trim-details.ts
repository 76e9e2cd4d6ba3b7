/**
 * What went wrong with a call, in the words of @grpc/grpc-js, without the heading of a note that it has left empty.
 */
export function trimDetails(details: string): string {
  return details.replace(/\s*Resolution note:\s*$/, '');
}
