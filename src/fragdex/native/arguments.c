/* What callers lend: columns of int64. */
#include "native.h"

/* NULL, or why a buffer is no column. */
static const char *refusal(const Py_buffer *buffer)
{
    const char *format = buffer->format ? buffer->format : "";
    if (*format == '@')
        format++;
    if (buffer->itemsize != 8 || (strcmp(format, "l") && strcmp(format, "q")))
        return "a column must hold int64 in the machine's order";
    if ((uintptr_t)buffer->buf % sizeof(int64_t))
        return "a column of int64 must start at a multiple of 8 bytes";
    return NULL;
}

static int convert(PyObject *given, column_t *column, int flags)
{
    if (!given) { /* a later argument was refused */
        PyBuffer_Release(&column->buffer);
        return 1;
    }
    if (PyObject_GetBuffer(given, &column->buffer, flags | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT))
        return 0;
    const char *why = refusal(&column->buffer);
    if (why) {
        PyBuffer_Release(&column->buffer);
        PyErr_SetString(PyExc_ValueError, why);
        return 0;
    }
    column->count = column->buffer.len / 8;
    return Py_CLEANUP_SUPPORTED;
}

int column_to_read(PyObject *given, void *column)
{
    return convert(given, column, 0);
}

int column_to_fill(PyObject *given, void *column)
{
    return convert(given, column, PyBUF_WRITABLE);
}
