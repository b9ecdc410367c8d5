/* What Python.h wants to know of a system that is not this one, from what the compiler says: for tools/builds.py only. */
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#if !defined(__APPLE__) /* Python.h knows these there */
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG 8
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_TIME_T 8
#define SIZEOF__BOOL 1
#endif
#define ALIGNOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define SIZEOF_PID_T 4
#define SIZEOF_FPOS_T 8
#define SIZEOF_OFF_T 8
#define HAVE_WCHAR_H 1
#if defined(_WIN32)
#define MS_WINDOWS 1
#define MS_WIN64 1
#define NT_THREADS 1
#define Py_ENABLE_SHARED 1
#else
#define HAVE_UNISTD_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_PTHREAD_H 1
#endif
